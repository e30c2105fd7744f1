"""Where the host reads a whole array that no single process holds."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.values import (
    Constant,
    External,
    Frame,
    Site,
    certain,
    constant,
)
from spmdlint.analysis.meshtypes.specs import names_of
from spmdlint.analysis.placement.kinds import ELEMENTS, SPANS, SPLIT, gives_keys
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.origins import Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.reading import Reading
from spmdlint.program import summary as s
from spmdlint.program.testfiles import is_named_as_test

_LOOP = "a loop over it"
_TAKES: tuple[type[s.Operation], ...] = (s.Next, s.Call)


class WholeRead(Struct, frozen=True):
    """A read of an array that spans processes: the site, the reader, and where the array is made.

    It ``spans`` processes without ``axes`` if how it is split is not known. Otherwise, without them, ``made`` is a
    condition that says that the array spans processes.
    """

    site: Site
    reader: str
    made: Site
    axes: tuple[str, ...]
    spans: bool = False
    path: tuple[Site, ...] = ()
    """If the site is a call that passes the array on, what leads from there to the read."""


class Reads:
    """Finds such reads outside traced code, in files that are written for several processes."""

    def __init__(
        self, evaluator: Evaluator, reach: Reach, multi: MultiProcess, known: Reading, placement: Placement
    ) -> None:
        self.ev = evaluator
        self.reach = reach
        self.multi = multi
        self.known = known
        self.placement = placement

    def found(self) -> Iterator[WholeRead]:
        """Every read that certainly raises."""
        for ref in self.ev.project.functions():
            if ref in self.reach.traced or not self.multi.runs_several(ref.path) or is_named_as_test(ref.path):
                continue
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            for block, number, _ in frame.code.each(_TAKES):
                if block in live:
                    yield from self._at(frame, number)

    def untiled(self) -> Iterator[WholeRead]:
        """Every gathering of such an array that stacks the parts of the processes, in any file."""
        for ref in self.reach.calling(self.known.gatherers):
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                if call.arguments:
                    yield from self._untiled(frame, number, call)

    def _untiled(self, frame: Frame, number: int, call: s.Call) -> Iterator[WholeRead]:
        callee = self.ev.callee(frame, call)
        tiled = self.known.gatherers.get(callee.name) if isinstance(callee, External) else None
        knowledge = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if tiled is None or knowledge is None or expects_failure(self.ev, frame, number):
            return
        if any(argument.star for argument in call.arguments):
            return
        given = passed(call, tiled, knowledge.positional)
        said = constant(self.ev.value(frame, given)) if given is not None else Constant(False)
        if said is None or said.value:
            return
        for each in (frame, *(other for other in self.reach.frames if other.ref == frame.ref)):
            found = self.placement.surely(SPLIT, each, call.arguments[0].value)
            axes = self._axes(found) if found is not None else ()
            found = found if axes else self.placement.surely(SPANS, each, call.arguments[0].value)
            if found is not None:
                reader = knowledge.name.rpartition(".")[2]
                made = self.placement.made(found)
                yield WholeRead(Site(frame.ref, number), reader, made, axes, spans=True)
                return
        reader = knowledge.name.rpartition(".")[2]
        for tested in self.placement.narrowed.of_value(frame, call.arguments[0].value):
            if not tested.here and not tested.host:
                yield WholeRead(Site(frame.ref, number), reader, Site(frame.ref, tested.test), ())
                return

    def _at(self, frame: Frame, number: int) -> Iterator[WholeRead]:
        read = self._read(frame, number)
        if read is None:
            return
        reader, array = read
        site = Site(frame.ref, number)
        if expects_failure(self.ev, frame, number) or handles(self.ev, frame, number, "RuntimeError"):
            return
        found = self.placement.surely(SPLIT, frame, array)
        if found is not None:
            yield from self._whole(site, reader, found)
        elif reader not in self.known.trees | {_LOOP} and self.placement.likely(SPLIT, frame, array) is not None:
            # What goes through a tree as well says little of the argument of a function.
            once = {edges[0].site: (edges, why) for edges, why in self.placement.passing(SPLIT, frame, array)}
            for call, (edges, why) in once.items():
                yield from self._whole(call, reader, why, (*(edge.site for edge in edges[1:]), site))

    def _whole(self, site: Site, reader: str, found: Reason, path: tuple[Site, ...] = ()) -> Iterator[WholeRead]:
        axes = self._axes(found) if found.kind != ELEMENTS else ()
        if axes:
            yield WholeRead(site, reader, self.placement.made(found), axes, path=path)

    def _read(self, frame: Frame, number: int) -> tuple[str, int] | None:
        """The description of how an operation reads a value, and the value."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        if isinstance(operation, s.Next):
            return (_LOOP, operation.iterable) if not gives_keys(self.ev, frame, operation.iterable) else None
        if not isinstance(operation, s.Call):
            return None
        callee = self.ev.callee(frame, operation)
        place = self.known.reads_at.get(callee.name, 0) if isinstance(callee, External) else 0
        if isinstance(callee, External) and self.known.reads(callee.name) and place < len(operation.arguments):
            read = operation.arguments[place].value
            keys = elements().get(callee.name) == "list" and gives_keys(self.ev, frame, read)
            return (callee.name, read) if not keys else None
        method = function.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in self.known.methods:
            return f".{method.name}()", method.base
        return None

    def _axes(self, found: Reason) -> tuple[str, ...]:
        """The axes along which the array of a reason is split, as far as its spec names them."""
        for step in found.chain():
            spec = certain(self.ev.value(self.ev.free_frame(step.site.ref), step.site.number))
            named = names_of(self.ev, spec) if step.kind == "spec" else None
            if named:
                return tuple(sorted(named))
        return ()
