"""Sources of variance: names, calls and methods that differ between processes, as the knowledge base says.

Also elements of `jax.local_devices()`, what a generator with a seed of its own draws (data), and ranks, as of MPI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from spmdlint.analysis.callgraph.effects import ParallelCall
from spmdlint.analysis.callgraph.entries import imported
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed, passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.numeric import names_something
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.paths import lists_folder
from spmdlint.analysis.evaluation.transfers import row_of_method
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Constant,
    External,
    Frame,
    Free,
    FunctionValue,
    Site,
    Values,
    certain,
    constant,
)
from spmdlint.analysis.variance.environment import GETTERS, variable_read
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known, Variable
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import operands
from spmdlint.program.uniform import Uniform

_DEPTH = 4
_BUCKETS = ("gcsfs.", "s3fs.", "google.cloud.storage.", "boto3.")
_TOLD: Mapping[Variable, str] = {
    "identity": "this process's rank",
    "group": "the number of the node or slice that this process is on",
    "host": "the name of this process's host",
}
_OF_JAX = names("jax_family")
NUMBERS = frozenset(("id", "process_index", "coords"))
"""Attributes that differ between any two devices, or any two processes, of a job; the others usually do not."""
_Seed: TypeAlias = tuple[Site, str]
"""A call that seeds a generator, and the parameter by which it does."""


class Sources:
    """Recognises sources of variance. One per run."""

    def __init__(self, facets: OtherFacets, evaluator: Evaluator, reach: Reach) -> None:
        self.facets = facets
        self.ev = evaluator
        self.reach = reach
        self.knowledge = evaluator.knowledge
        self._uniform = Uniform(evaluator.project)
        self._reached: dict[FunctionRef, bool] = {}

    def of_call(self, frame: Frame, number: int, operation: s.Call, callee: External) -> Reason | None:
        """Why a call of a library's function is a source; None if it is not."""
        known = self.knowledge.get(callee.name)
        site = Site(frame.ref, number)
        if known is not None and known.source is not None and not known.callback:
            given = [self.ev.value(frame, argument.value) for argument in operation.arguments]
            return self._given(known, given, site)
        if known is not None and known.shuffles and shuffles(self.ev, frame, number, operation, known):
            return self._drawn(known, site, f"{known.name}() shuffles without a seed")
        if known is not None and known.own_by is not None and self._divides(frame, operation, known):
            return Reason(site, f"{known.name}() gives this process's part", "data")
        if callee.name == "builtins.hash" and operation.arguments:
            if not names_something(self.ev, frame, operation.arguments[0].value):
                return None
            return Reason(site, "hash() of a string is seeded differently in each process", "hash")
        if callee.name in GETTERS and operation.arguments:
            return self._environment(self.ev.value(frame, operation.arguments[0].value), site)
        return None

    def _divides(self, frame: Frame, operation: s.Call, known: Known) -> bool:
        """Whether the spec of a global array certainly names an axis, so that each process has a part of its own."""
        given = passed(operation, known.own_by or "", known.positional)
        spec = certain(self.ev.value(frame, given)) if given is not None else None
        named = spec.arguments.positional if isinstance(spec, Applied) else ()
        return any(certain(entry) not in (None, Constant(None)) for entry in named)

    def of_applied(self, value: Applied) -> Reason | None:
        """Why the call that gave this value is a source; None if it is not."""
        known = self.knowledge.get(value.name)
        if known is None or known.source is None or known.callback or value.arguments.open:
            return None
        if value.site.number in self._uniform.values(value.site.ref):
            return None
        return self._given(known, [*value.arguments.positional, *(v for _, v in value.arguments.keywords)], value.site)

    def _given(self, known: Known, given: Sequence[Values], site: Site) -> Reason | None:
        """Why a call of a source with these arguments varies; None if it does not. A seed that is None is not given."""
        count = sum(certain(each) != Constant(None) for each in given)
        if known.source is None or (known.at_most is not None and count > known.at_most):
            return None
        text = f"{known.name}{'' if known.attribute else '()'} differs between processes"
        return self._drawn(known, site, text, known.source)

    def _drawn(self, known: Known, site: Site, text: str, kind: str = "entropy") -> Reason | None:
        """Why what a call draws varies: nothing seeds its generator, or a seed that differs."""
        seeds = self._seeds_of(known, site)
        return self._own_seed(seeds, site) if seeds else Reason(site, text, kind)

    def _own_seed(self, seeds: list[_Seed], site: Site) -> Reason | None:
        """Why a draw varies although the program seeds the generator: it gives each process a seed of its own."""
        found: Reason | None = None
        for seed, parameter in seeds:
            call = self.ev.project.function(seed.ref).operations[seed.number]
            given = passed(call, parameter, (parameter,)) if isinstance(call, s.Call) else None
            found = self.facets.content.why(self.ev.free_frame(seed.ref), given) if given is not None else None
            if found is None:
                return None  # the choice is the author's
        return drawn(site, found)

    def _seed(self, known: Known) -> str:
        """The parameter of what seeds a draw: the one that the row of the draw names, or else the first."""
        return known.seeded_with or self._first(known.seeded_by)

    def _first(self, name: str) -> str:
        known = self.knowledge.get(name)
        return next(iter(known.positional if known is not None else ()), "seed")

    def _seeds_of(self, known: Known, draw: Site) -> list[_Seed]:
        """Where the program that draws a number seeds the generator, unless the number is drawn before."""
        component, ref = self.ev.project.component, draw.ref
        seeds = self._seeding.get((known.seeded_by, self._seed(known)), ())
        own = (seed for seed in seeds if component[seed[0].ref.path] == component[ref.path])
        if self._runs_at_import(ref):
            own = (seed for seed in own if self._comes_before(seed[0], draw))
        return [seed for seed in own if seed[0].ref == ref or self._is_reached(seed[0].ref)]

    def _runs_at_import(self, ref: FunctionRef) -> bool:
        return self.ev.project.function(ref).kind in ("module", "class")

    def _comes_before(self, seed: Site, draw: Site) -> bool:
        """Whether a file that draws a number as it is run has come to a seed: there, or in what it calls or imports."""
        here = self.ev.project.modules[draw.ref.path]
        files = {path for each in here.imports for path in imported(self.ev.project, here, each)}
        pending = [seed]
        for at in pending:  # and from where each of these is called
            if at.ref == draw.ref:
                if at.number < draw.number:
                    return True
            elif self._runs_at_import(at.ref) and at.ref.path in (draw.ref.path, *files):
                return True
            else:
                edges = self.reach.callers.get(at.ref, ())
                pending += {edge.site for edge in edges}.difference(pending)
        return False

    @cached_property
    def _seeding(self) -> Mapping[tuple[str, str], tuple[_Seed, ...]]:
        """By seeding function and parameter, the calls that pass it an argument which is not None by default."""
        wanted = {(known.seeded_by, self._seed(known)) for known in self.knowledge.functions.values()}
        found: dict[tuple[str, str], dict[_Seed, None]] = {}
        for use in self.reach.applications:
            name = use.applied.name
            known = self.knowledge.get(name)
            calling = known.seeds if known is not None else ()
            for key in wanted:
                parameter = key[1] if key[0] == name else self._first(name) if key[0] in calling else None
                if parameter is not None and self._is_given(use.applied.arguments, parameter):
                    found.setdefault(key, {})[use.site, parameter] = None
        return {key: tuple(sites) for key, sites in found.items()}

    def _is_reached(self, ref: FunctionRef) -> bool:
        """Whether anything may run a function: it has callers, or is named in a place other than its definition."""
        if ref not in self._reached:
            project = self.ev.project
            name = frozenset((project.function(ref).name,))
            self._reached[ref] = (
                ref.index == 0
                or bool(self.reach.callers.get(ref))
                or project.enclosing_class(ref) is not None
                or any(self.ev.code(other).mentions(name) for other in project.functions())
            )
        return self._reached[ref]

    def _is_given(self, arguments: Arguments, parameter: str) -> bool:
        given = arguments.keyword(parameter)
        if given is None and not arguments.positional:
            return arguments.open
        value = certain(arguments.positional[0] if given is None else given)
        if isinstance(value, Constant):
            return value.value is not None
        return not isinstance(value, Free) or self._is_passed(value, _DEPTH)

    def _is_passed(self, parameter: Free, depth: int) -> bool:
        """Whether some call passes a parameter that is None by default; any other parameter counts as passed."""
        function, frame = self.ev.project.function(parameter.ref), self.ev.free_frame(parameter.ref)
        default = self.ev.default(parameter.ref, frame.outer, parameter.name)
        if default is None or constant(default) != Constant(None) or depth == 0:
            return True
        bound = self.ev.project.enclosing_class(parameter.ref) is not None
        for edge in self.reach.callers.get(parameter.ref, ()):
            call = edge.caller.code.operations[edge.number]
            if not isinstance(call, s.Call) or any(argument.star for argument in call.arguments):
                return True
            number = passed_to(function, call, parameter.name, bound=bound)
            value = certain(self.ev.value(edge.caller, number)) if number is not None else None
            if number is not None and not (isinstance(value, Free) and not self._is_passed(value, depth - 1)):
                return True
        return False

    def of_method(self, frame: Frame, number: int, operation: s.Call) -> Reason | None:
        """Why a call of a method of an unknown object is a source, by the method's name; None if it is not."""
        method = self.ev.function(frame).operations[operation.function]
        if not isinstance(method, s.Attribute):
            return None
        if lists_folder(self.ev, frame, method):
            return Reason(
                Site(frame.ref, number), f".{method.name}() may find different files on each process", "files"
            )
        known = row_of_method(self.ev, frame, method.name)
        if known is None or known.source is None or known.callback is not None:
            return None
        callees = self.ev.value(frame, operation.function)
        if any(isinstance(callee, (FunctionValue, External)) for callee in callees):
            return None
        stores = (value for value in self.ev.value(frame, method.base) if isinstance(value, Applied))
        if known.source == "files" and any(store.name.startswith(_BUCKETS) for store in stores):
            return None  # which all processes see in the same way
        return Reason(Site(frame.ref, number), f".{method.name}() may differ between processes", known.source)

    def of_name(self, frame: Frame, number: int) -> Reason | None:
        """Why a name or an element is a source without being called; None if it is not."""
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Subscript):
            name = variable_read(self.ev, frame, operation)
            return self._environment(self.ev.value(frame, name), Site(frame.ref, number)) if name is not None else None
        for value in ordered(self.ev.value(frame, number)):
            if isinstance(value, External):
                known = self.knowledge.get(value.name)
                if known is not None and known.attribute and known.source is not None:
                    return self._given(known, (), Site(frame.ref, number))
        return None

    def _environment(self, name: Values, site: Site) -> Reason | None:
        variable = constant(name)
        kind = self.knowledge.variables.get(str(variable.value)) if variable is not None else None
        if variable is None or kind is None:
            return None
        return Reason(site, f"the environment variable {variable.value} is {_TOLD[kind]}", kind)

    # -- code that runs at its own times

    def of_store(self, ref: FunctionRef, number: int) -> Reason | None:
        """Why what a function stores for others varies: nobody knows when the function runs."""
        known = self._callbacks.get(ref)
        if known is None:
            return None
        name = self.ev.project.function(ref).name
        return Reason(Site(ref, number), f"{name}() runs at a different time on each process", known)

    @cached_property
    def _callbacks(self) -> dict[FunctionRef, str]:
        """The functions that a signal or a thread runs, and which of the two."""
        found: dict[FunctionRef, str] = {}
        for use in self.reach.applications:
            known = self.knowledge.get(use.applied.name)
            if known is None or known.callback is None or known.source is None:
                continue
            for value in self.ev.argument(use.applied, known.callback) or ():
                if isinstance(value, FunctionValue):
                    found[value.ref] = known.source
        return found


def shuffles(ev: Evaluator, frame: Frame, number: int, call: s.Call, known: Known) -> bool:
    """Whether a call shuffles by a generator that it is not given: by default, or because it is told to."""
    made = certain(ev.value(frame, number))
    if made.arguments.open if isinstance(made, Applied) else any(argument.star for argument in call.arguments):
        return False

    def given(parameter: str) -> Values | None:
        if isinstance(made, Applied):
            return ev.argument(made, parameter)
        value = passed(call, parameter, known.positional)
        return ev.value(frame, value) if value is not None else None

    asked = given(known.asked) if known.asked is not None else None
    if known.asked is not None and (asked is None or constant(asked) != Constant(True)):
        return False
    return all(value is None or _says_nothing(value, known.seed_of) for value in map(given, known.shuffles))


def _says_nothing(value: Values, seed: str | None) -> bool:
    """Whether the value of a parameter neither forbids shuffling nor determines the order."""
    if constant(value) in (Constant(True), Constant(None)):
        return True
    made = certain(value)
    if seed is None or not isinstance(made, Applied) or made.arguments.open or made.arguments.positional:
        return False
    return made.arguments.keyword(seed) is None


def source_function(ev: Evaluator, reason: Reason) -> str:
    """The name of the library's function, called, or attribute that is the source of a reason; otherwise empty."""
    site = reason.source.site
    read = ev.project.function(site.ref).operations[site.number]
    known = certain(ev.value(ev.free_frame(site.ref), read.function if isinstance(read, s.Call) else site.number))
    return known.name if isinstance(known, External) else ""


def drawn(site: Site, generator: Reason | None) -> Reason | None:
    """Why the numbers vary that a generator draws, which varies because of ``generator``."""
    if generator is None or generator.kind != "identity":
        return generator
    return Reason(site, "each process draws numbers of its own here", "data", generator, "draw")


def drawn_in_round(content: Origins, frame: Frame, loop: int, values: Iterable[int]) -> Reason | None:
    """Why a value varies that is drawn anew in each iteration of a loop."""
    block_of = frame.code.function.block_of
    body = frame.code.flow.loop_body(block_of[loop])
    found = content.any_of(frame, values)
    cause = None if found is None or found.kind != "data" else found.cause
    if cause is None or cause.through != "draw" or cause.site.ref != frame.ref:
        return None
    return found if block_of[cause.site.number] in body else None


def told_by_others(evaluator: Evaluator, multi: MultiProcess, path: Path, reason: Reason) -> bool:
    """Whether variance comes from the rank of such a process, in a program where each process has its own JAX."""
    name = source_function(evaluator, reason)
    if not name or multi.surely_runs_several(path):
        return False
    known = evaluator.knowledge.get(name)
    return known is not None and known.source == "identity" and not known.name.startswith("jax.")


def waits_for_others(call: ParallelCall) -> bool:
    """Whether a call waits for such processes: what JAX launches runs on the devices of one of them."""
    return call.strength == "strong" and not str(call.same).startswith(_OF_JAX)


def is_of_others(call: ParallelCall) -> bool:
    """Whether a call is such a library's own: what JAX compiles around it may differ between processes."""
    return isinstance(call.same, str) and waits_for_others(call)


class OwnDevice(Property):
    """The value is a device of this process, or a list of them."""

    def __init__(self) -> None:
        self.local = reading().local

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Next, s.Subscript)):
            return origins.why(frame, operands(operation)[0])
        if isinstance(operation, s.Call):
            for callee in ordered(origins.ev.value(frame, operation.function)):
                if isinstance(callee, External):
                    if callee.name in self.local:
                        return Reason(
                            Site(frame.ref, number), f"{callee.name}() gives this process's devices", "identity"
                        )
                    listed = callee.name in ("builtins.list", "builtins.sorted", "builtins.reversed")
                    return origins.why(frame, operation.arguments[0].value) if listed and operation.arguments else None
            return CONTINUE
        if isinstance(operation, (s.Load, s.Store, s.Attribute, s.Parameter, s.Import)):
            return CONTINUE
        return None
