"""What rules may ask: the program and its analyses behind one screen of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from spmdlint.analysis.axes.edits import Edits
from spmdlint.analysis.axes.free import FreeAxes, Unbound
from spmdlint.analysis.axes.inside import Inside
from spmdlint.analysis.axes.optional import OptionalAxes
from spmdlint.analysis.axes.regions import Regions
from spmdlint.analysis.axes.specs import Specs
from spmdlint.analysis.axes.trials import Trials
from spmdlint.analysis.axes.written import Places
from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.entries import Entries
from spmdlint.analysis.callgraph.reach import MAX_FRAMES, Reach, Visitor
from spmdlint.analysis.callgraph.tracing import CallWhileTracing, calls_while_tracing
from spmdlint.analysis.divergence.branches import HAZARDS, Divergence, Divergences, Hazard
from spmdlint.analysis.divergence.byall import DoneByAll, DoneByAllSearch
from spmdlint.analysis.divergence.elsewhere import CallElsewhere, CallsElsewhere
from spmdlint.analysis.divergence.exceptions import ExceptionPath, ExceptionPaths
from spmdlint.analysis.divergence.turns import Turn, Turns
from spmdlint.analysis.divergence.unawaited import UnawaitedFile, UnawaitedFiles
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Site
from spmdlint.analysis.explanation import Explainer, Explanation
from spmdlint.analysis.inputs.constants import TracedConstant, traced_constants
from spmdlint.analysis.inputs.contracts import Breach, Contracts
from spmdlint.analysis.inputs.demands import Demands
from spmdlint.analysis.inputs.given import Given, Inputs
from spmdlint.analysis.inputs.localrows import LocalNumber, LocalNumbers, LocalRows, RowConditions
from spmdlint.analysis.inputs.mixups import Mixup, Mixups
from spmdlint.analysis.inputs.placed import Placed, Placements
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.inputs.replicas import StateKeys, own_replicas
from spmdlint.analysis.inputs.seeds import SharedSeeds
from spmdlint.analysis.inputs.sharedkeys import GlobalIndex, SharedSplit, global_indices, shared_splits
from spmdlint.analysis.inputs.unshared import Unshared, UnsharedData
from spmdlint.analysis.meshtypes.bodies import Bodies
from spmdlint.analysis.meshtypes.localsteps import KeptGradients, kept_gradients
from spmdlint.analysis.meshtypes.outputs import OneRow, Outputs
from spmdlint.analysis.order.listed import ListingLoop, ListingNumbers, Listings, ListingShare
from spmdlint.analysis.order.listings import ListingOrder
from spmdlint.analysis.order.mending import Mending
from spmdlint.analysis.order.sets import SetOrder
from spmdlint.analysis.order.stacked import HeldOrder
from spmdlint.analysis.order.unordered import SetLoop, SetLoops
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.setup.absent import AbsentNames, UseOfAbsent
from spmdlint.analysis.setup.reading import Reads, WholeRead
from spmdlint.analysis.setup.starting import Starting, Unconnected, unconnected
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.worlds.search import Worlds
from spmdlint.diagnostics import Location, Place
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.heuristics.spreading import Spreading
from spmdlint.knowledge.changes import changes
from spmdlint.knowledge.load import Knowledge
from spmdlint.knowledge.reading import reading
from spmdlint.knowledge.startup import startup
from spmdlint.knowledge.typing import typing_table
from spmdlint.knowledge.units import units
from spmdlint.program.link import Project
from spmdlint.program.summary import Attribute, Call
from spmdlint.releases import Releases

_REFUSES_GLOBAL = (0, 8)
MultiProcessSetting = Literal["auto", "always", "never"]
_MENDED_AT_THE_SOURCE = frozenset(
    ("clock", "entropy", "files", "signal", "completion", "hash", "set", "listing", "shuffled")
)
"""The kinds of sources that one agreement, or one sorting, mends for everything that depends on them."""
CUT_SHORT = (
    f"The program is so large that only the first {MAX_FRAMES:,} call contexts were analysed separately; "
    "findings that need more are missing. Exclude code that is not yours, or lint its parts separately."
)


class Program:
    """A linked project. Each analysis runs once, when it is first needed.

    ``preview``: analyses may also report what is less certain than a default rule requires. ``jax`` are the
    releases that the program is written for; ``multi_process`` says whether it runs as several
    processes. ``expected_failures``: whether code that its author expects to fail counts. ``hazards``: the hazards of
    divergent branches that are asked for; a call is told with one of them only, however many branches it depends on.
    """

    def __init__(
        self,
        project: Project,
        knowledge: Knowledge,
        *,
        preview: bool = False,
        jax: Releases | None = None,
        multi_process: MultiProcessSetting = "auto",
        expected_failures: bool = False,
        hazards: Collection[Hazard] = HAZARDS,
    ) -> None:
        self.project = project
        self.hazards = hazards
        self.knowledge = knowledge
        self.preview = preview
        self.jax = jax or Releases()
        self.multi_process = multi_process
        self.evaluator = Evaluator(project, knowledge, heeds_intent=not expected_failures)
        self.calls = Calls(self.evaluator)
        self.notes: list[str] = []
        """What the analyses that have run left out, for the user."""

    # -- the hazards

    def unbound_axes(self) -> Iterator[Unbound]:
        """Paths on which nothing binds a collective's axis."""
        return FreeAxes(self.evaluator, self.calls, self.reach).unbound()

    @cached_property
    def divergent_branches(self) -> tuple[Divergence, ...]:
        """Branches on values that differ between processes, with different parallel calls on the two sides."""
        if self.multi_process == "never":
            return ()
        return tuple(self._divergence_check.branches())

    @cached_property
    def _divergence_check(self) -> Divergences:
        return Divergences(
            self.evaluator,
            self.reach,
            self.effects,
            self._facets,
            self._multi,
            self._entries,
            RowConditions(self.evaluator, *self._local_rows),
            self._worlds,
            preview=self.preview,
            hazards=self.hazards,
        )

    def unawaited_files(self) -> Iterator[UnawaitedFile]:
        """Files that some processes make and all read, without waiting."""
        yield from UnawaitedFiles(self.evaluator, self.reach, self.effects, self._multi, self.variance).found()

    def turns(self) -> Iterator[Turn]:
        """Parallel calls in blocks that processes enter in turn."""
        yield from Turns(self.evaluator, self.reach, self.effects, self._facets).found()

    def set_loops(self) -> tuple[SetLoop, ...]:
        """Iterations over sets whose order reaches parallel calls or the traced program."""
        return self._set_loops

    @cached_property
    def _set_loops(self) -> tuple[SetLoop, ...]:
        order, variance = self.set_order, self.variance
        held = Origins(self.evaluator, self.calls, self.reach, HeldOrder())
        found = SetLoops(
            self.evaluator,
            self.calls,
            self.reach,
            self.effects,
            order,
            held,
            variance,
            self._multi,
            self._entries,
            preview=self.preview,
        )
        return tuple(found.loops())

    def listings(self) -> Iterator[ListingShare | ListingLoop]:
        """Where the order of a directory listing decides what a process gets or calls."""
        return (found for found in self._shares if isinstance(found, ListingLoop) or not found.mixed)

    @cached_property
    def _shares(self) -> tuple[ListingShare | ListingLoop, ...]:
        return tuple(self._lists.found())

    def numbers(self, order: str) -> Iterator[ListingNumbers]:
        """Names that are numbered by their position in a listing or a set."""
        return (found for found in self._numbers if found.reason.kind == order)

    @cached_property
    def _numbers(self) -> tuple[ListingNumbers, ...]:
        return tuple(self._lists.numbers())

    @cached_property
    def _lists(self) -> Listings:
        orders = self.listing_order, self.set_order
        return Listings(
            self.evaluator, self.reach, self.effects, *orders, self.variance, self._multi, preview=self.preview
        )

    def calls_while_tracing(self) -> Iterator[CallWhileTracing]:
        """Parallel calls of the host inside code that JAX traces."""
        return calls_while_tracing(self.evaluator, self.reach)

    def calls_elsewhere(self) -> Iterator[CallElsewhere]:
        """Parallel calls in threads and in callbacks from the device."""
        check = CallsElsewhere(self.evaluator, self.calls, self.reach, self.effects, self._multi, preview=self.preview)
        return check.found()

    def exception_paths(self) -> Iterator[ExceptionPath]:
        """Parallel calls that an exception on one process adds or skips."""
        check = ExceptionPaths(
            self.evaluator, self.reach, self.effects, self._multi, self._entries, self.variance, preview=self.preview
        )
        return check.found()

    def varying_shapes(self) -> Iterator[Given]:
        """Arguments of parallel calls whose shape differs between processes."""
        return self._inputs.shapes()

    def short_batches(self) -> Iterator[Given]:
        """Arguments of parallel calls that are the last, short batch of a process's own part. Only with ``preview``."""
        return self._inputs.short_batches() if self.preview else iter(())

    def varying_statics(self) -> Iterator[Given]:
        """Static arguments of parallel calls that differ between processes."""
        return self._inputs.statics()

    def traced_constants(self) -> tuple[TracedConstant, ...]:
        """Values of this process that become constants of a traced program."""
        return self._constants

    @cached_property
    def _constants(self) -> tuple[TracedConstant, ...]:
        given = (self.evaluator, self.calls, self.reach, self._facets, self._multi)
        return tuple(traced_constants(*given, preview=self.preview))

    def breaches(self, code: str) -> Iterator[Breach]:
        """Arguments that differ between processes although their calls demand that they agree, for one rule."""
        return self._contracts.broken(code) if self.multi_process != "never" else iter(())

    @cached_property
    def _contracts(self) -> Contracts:
        demands = Demands(self.evaluator, self.reach, self.placement)
        orders = (self.set_order, self.listing_order)
        return Contracts(demands, self._facets, orders, self.shared_seeds, self._multi, preview=self.preview)

    @cached_property
    def shared_seeds(self) -> SharedSeeds:
        """Which seeds have to agree."""
        return SharedSeeds(self.evaluator, self.reach, self._facets, self._multi, preview=self.preview)

    def own_states(self) -> Iterator[tuple[Site, Reason]]:
        """Keys that contain the process index, and that the state of training is made with."""
        given = (self.evaluator, typing_table(), self.reach, self.variance, self._multi)
        return StateKeys(*given, preview=self.preview).found()

    def shuffled_shares(self) -> Iterator[ListingShare]:
        """Parts, selected by process index, of data that each process shuffled differently."""
        return (found for found in self._shares if isinstance(found, ListingShare) and found.mixed)

    @cached_property
    def _inputs(self) -> Inputs:
        return Inputs(
            self.evaluator, self.reach, self.effects, self._facets, self._multi, self._worlds, preview=self.preview
        )

    @cached_property
    def _worlds(self) -> Worlds:
        return Worlds(self.evaluator, self._facets.varies)

    def absent_names(self) -> Iterator[UseOfAbsent]:
        """Names and parameters that the configured version of JAX does not have: removed before it, or newer.

        What only the lower of a project's bounds does not have counts with ``preview``: few keep it up to date.
        """
        stale = self.jax.newest is None and not self.preview
        tables = changes(self.jax.oldest or self.jax.newest)
        return AbsentNames(self.evaluator, tables, Releases() if stale else self.jax).uses()

    @cached_property
    def starting(self) -> Starting:
        """How the program starts: initialize that is called late, or more than once."""
        return Starting(self.evaluator, self.calls, self.reach, self.variance, startup())

    def unconnected(self) -> Iterator[Unconnected]:
        """Programs that ask which process they are and never connect to the others. Only with ``preview``."""
        if self.preview and self.multi_process != "never":
            yield from unconnected(self.evaluator, self.reach, startup())

    def whole_reads(self) -> Iterator[WholeRead]:
        """Reads of whole arrays that no single process holds."""
        yield from self._reads.found()

    def untiled_gathers(self) -> Iterator[WholeRead]:
        """Gatherings of global arrays, which JAX refuses since 0.8; with ``preview`` also beside older names."""
        if self.jax.newest is not None and self.jax.newest < _REFUSES_GLOBAL and not self.preview:
            return
        component, found = self.project.component, tuple(self._reads.untiled())
        gone = (use for use in self.absent_names() if not use.change.added and use.change.since <= _REFUSES_GLOBAL)
        older = {component[use.site.ref.path] for use in gone} if found and not self.preview else set()
        yield from (each for each in found if component[each.site.ref.path] not in older)

    @cached_property
    def bodies(self) -> Bodies:
        """Mapped bodies, typed over the axes of their mesh."""
        return Bodies(self.evaluator, self.calls, self.reach, typing_table())

    def kept_gradients(self) -> Iterator[KeptGradients]:
        """Gradients that are reduced over the devices of one process only."""
        if self.multi_process != "never":
            yield from kept_gradients(self.calls, self.reach, self.placement, self._multi)

    def done_by_all(self) -> Iterator[DoneByAll]:
        """What every process does, although one is meant to."""
        if self.multi_process != "never":
            given = (self.effects, self._multi, self.variance)
            yield from DoneByAllSearch(*given, preview=self.preview).found()

    def global_indices(self) -> Iterator[GlobalIndex]:
        """Keys of this process's devices, selected by an index among all devices."""
        if self.multi_process != "never":
            yield from global_indices(typing_table(), self._facets.content, self._quantities)

    def own_replicas(self) -> Iterator[tuple[Site, Reason]]:
        """Replicated state that comes from random numbers."""
        given = (self.evaluator, typing_table(), self._facets.content, self._multi, self.reach)
        yield from own_replicas(*given, self.placement, preview=self.preview)

    def shared_splits(self) -> Iterator[SharedSplit]:
        """Keys that every process splits identically for its own devices; with ``preview`` in any file."""
        if self.multi_process != "never":
            for found in shared_splits(typing_table(), self._facets.content, self._quantities, self.placement):
                if self.preview or self._multi.surely_runs_several(found.site.ref.path):
                    yield found

    @cached_property
    def _quantities(self) -> Quantities:
        return Quantities(self.evaluator, units())

    def mixups(self) -> Iterator[Mixup]:
        """Numbers of processes and of devices that are confused; sizes of meshes only with ``preview``."""
        for found in Mixups(self.calls, self.reach, self._quantities, self._multi).found():
            if self.preview or found.kind != "mesh":
                yield found

    def placements(self) -> Iterator[Placed]:
        """Values that are put on devices of other processes as well."""
        content = self._facets.content
        yield from Placements(
            self.evaluator, self.reach, self._quantities, content, self._multi, self.placement
        ).found()

    def unshared_data(self) -> Iterator[Unshared]:
        """Data that every process reads whole, although its batches are meant for one."""
        if self.multi_process != "never":
            given = (self.variance, self._facets.sharing, self._quantities, self._multi)
            yield from UnsharedData(*given).found()

    @cached_property
    def _outputs(self) -> Outputs:
        return Outputs(self.evaluator, self.reach, self.bodies, typing_table())

    @cached_property
    def _reads(self) -> Reads:
        return Reads(self.evaluator, self.reach, self._multi, reading(), self.placement)

    def one_rows(self) -> Iterator[OneRow]:
        """Reads on the host of one device's row of an output that was never reduced."""
        return self._outputs.one_rows()

    def local_numbers(self) -> Iterator[LocalNumber]:
        """Numbers computed from this process's rows that only some processes report."""
        yield from LocalNumbers(self.evaluator, self.reach, *self._local_rows, self.variance, self._multi).found()

    @cached_property
    def _local_rows(self) -> tuple[LocalRows, Origins]:
        what = LocalRows(self._outputs, self.placement, self.evaluator.once(Control))
        return what, Origins(self.evaluator, self.calls, self.reach, what)

    @cached_property
    def specs(self) -> Specs:
        """Meshes, specs, permutations and maps where they are made."""
        return Specs(self.evaluator, self.calls, self.reach)

    @cached_property
    def regions(self) -> Regions:
        """Collectives and constraints, and the maps around them."""
        return Regions(Inside(self.calls, self.reach), self.specs, self.reach)

    @cached_property
    def optional_axes(self) -> OptionalAxes:
        """Reductions that helpers leave out because they are not passed an axis that their caller has."""
        return OptionalAxes(self.calls, self.regions.regions())

    @cached_property
    def written(self) -> Places:
        """Where the lists that are passed to collectives are written."""
        return Places(self.calls, self.reach)

    @cached_property
    def trials(self) -> Trials:
        """Permutations and groups that are wrong for any number of devices, which is not known."""
        return Trials(self.evaluator, self.specs, self.written)

    # -- the analyses

    @cached_property
    def reach(self) -> Reach:
        """The call graph."""
        reach = Visitor(self.evaluator, self.calls).run()
        if not reach.complete:
            self.notes.append(CUT_SHORT)
        return reach

    @cached_property
    def effects(self) -> Effects:
        """Parallel calls by function."""
        return Effects(self.evaluator, self.calls, self.reach, Spreading(self.project), self.placement, self.preview)

    @cached_property
    def variance(self) -> Origins:
        """The values whose content differs between processes."""
        return self._facets.content

    @cached_property
    def placement(self) -> Placement:
        """Where values live."""
        return Placement(self.evaluator, self.calls, self.reach)

    @cached_property
    def _multi(self) -> MultiProcess:
        return MultiProcess(self.project, always=self.multi_process == "always")

    @cached_property
    def _entries(self) -> Entries:
        return Entries(self.evaluator, self.reach)

    @cached_property
    def _facets(self) -> Facets:
        return Facets(self.evaluator, self.calls, self.reach, self.placement.may_span, self._multi.programs)

    @cached_property
    def set_order(self) -> Origins:
        """The values that are in the order of a set."""
        return Origins(self.evaluator, self.calls, self.reach, SetOrder())

    @cached_property
    def listing_order(self) -> Origins:
        """The values that are in the order of a directory listing."""
        return Origins(self.evaluator, self.calls, self.reach, ListingOrder(self.knowledge))

    # -- places and source text

    @cached_property
    def edits(self) -> Edits:
        """Edits that fix findings about axis names."""
        return Edits(self.evaluator)

    @cached_property
    def mending(self) -> Mending:
        """Edits that put things in one fixed order."""
        return Mending(self.evaluator, self.set_order, self.place)

    def explain(self, path: Path, row: int) -> Explanation:
        """What the analyses know about a line, counted from 1."""
        return self.explainer().line(path, row)

    def explainer(self) -> Explainer:
        """What answers questions about single operations."""
        check, orders = self._divergence_check, (self.set_order, self.listing_order)
        return Explainer(self.evaluator, self.reach, self.effects, self._facets, orders, check, self.placement)

    def function_name(self, site: Site) -> str:
        """The name of the function that contains an operation; empty for the top level of a module."""
        function = self.project.function(site.ref)
        return "" if function.kind == "module" else "the lambda" if function.kind == "lambda" else function.name

    def call_name(self, call: ParallelCall) -> str:
        """What a parallel call is called: by its whole name, if a function on the way to it has the last part of it."""
        on_the_way = (self.function_name(site) for site in call.path[1:])
        return call.same if isinstance(call.same, str) and call.name in on_the_way else call.name

    def place(self, site: Site) -> Place:
        """The file and the span of an operation."""
        summary = self.project.modules[site.ref.path].summary
        start, end = self.project.function(site.ref).spans[site.number]
        return Place(site.ref.path, Location(*summary.position(start)), Location(*summary.position(end)))

    def is_inside(self, inner: Site, outer: Site) -> bool:
        """Whether one operation is a part of another."""
        return inner.ref == outer.ref and self.project.function(inner.ref).holds(outer.number, inner.number)

    def cause(self, reason: Reason) -> tuple[Place, ...]:
        """What findings with one cause have in common: a source, and the calls that hand its value on.

        Empty if the processes are meant to differ there, as in their index: then each use is to be mended by itself.
        """
        if reason.source.kind not in _MENDED_AT_THE_SOURCE:
            return ()
        steps = reason.chain()
        returning = [step.site for before, step in pairwise(steps) if self._returns(before.site, step.site)]
        return tuple(map(self.place, (steps[0].site, *returning)))

    def _returns(self, inner: Site, outer: Site) -> bool:
        """Whether a function returns a value to a call or to what reads a property: another call has another value."""
        operation = self.project.function(outer.ref).operations[outer.number]
        return outer.ref != inner.ref and isinstance(operation, (Call, Attribute))

    def cut_at(self, site: Site) -> Site:
        """Where a call that makes a map says how its arguments are split; the call itself if it does not say."""
        operations = self.project.function(site.ref).operations
        call = operations[site.number]
        cut = None
        while cut is None and isinstance(call, Call):  # a decorator is the result of a call before it
            given = {argument.keyword: argument.value for argument in call.arguments}
            cut = given.get("in_axes", given.get("in_specs"))
            call = operations[call.function]
        return site if cut is None else Site(site.ref, cut)

    def location(self, site: Site, offset: int) -> Location:
        """A position in the file of an operation."""
        return Location(*self.project.modules[site.ref.path].summary.position(offset))

    def where(self, site: Site, seen_from: Path) -> str:
        """Words such as "line 12", or "line 12 of losses.py" from a different file.

        The path is as long as it must be to tell the file from others with its name: "line 12 of train/losses.py".
        """
        place = self.place(site)
        line = f"line {place.start.row}"
        return line if place.path == seen_from else f"{line} of {self.project.tail(place.path)}"

    @property
    def files(self) -> Mapping[Path, object]:
        """The files of the program."""
        return self.project.modules
