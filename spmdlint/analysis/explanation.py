"""What the analyses know about one line: why there is a finding, or why there is none.

It makes the same queries as the rules, for every name and call on the line, and says where the answers end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.effects import MAX_CALLS, Effects, ParallelCall
from spmdlint.analysis.callgraph.participants import on_local_devices
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.divergence.branches import Divergences
from spmdlint.analysis.divergence.terms import Terms, written
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    NOTHING,
    UNKNOWN,
    Applied,
    ClassValue,
    External,
    Frame,
    Free,
    FunctionValue,
    ModuleValue,
    Namespace,
    Site,
    Value,
    Values,
)
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.control import Branch, Control
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Project
from spmdlint.program.operands import inputs
from spmdlint.program.uniform import Uniform


class Variation(Struct, frozen=True):
    """Whether a value differs between processes. ``facets``: those that differ; ``cut``: the search was cut short.

    ``lives`` is where it lives, whether that is sure, and why.
    """

    site: Site
    facets: tuple[tuple[str, Reason], ...]
    cut: bool = False
    declared: bool = False
    lives: tuple[str, bool, Reason] | None = None


class Guard(Struct, frozen=True):
    """A condition that decides whether code runs; ``answer`` is its outcome then, None for a loop.

    ``silence`` says why no rule reports a divergence at it although its value varies.
    """

    site: Site
    answer: bool | None
    variation: Variation
    silence: str | None = None


class Callee(Struct, frozen=True):
    """What is called; ``path`` and ``row`` are of a function of the project."""

    name: str
    path: Path | None = None
    row: int = 0


class CallNote(Struct, frozen=True):
    """A call: its callees, its extent, the parallel calls that it leads to, in order, and its effect term.

    ``passed`` are the functions that known callers pass, if a parameter is called. ``result`` is whether what it
    returns differs between processes; ``stopped`` are arguments that differ although nothing is known to differ in the
    result.
    """

    site: Site
    callees: tuple[Callee, ...]
    passed: tuple[Callee, ...]
    unknown: bool
    extent: str
    effect: tuple[ParallelCall, ...]
    cut: bool
    term: str
    """The effect of the call as the other processes see it, as an effect term."""
    result: Variation
    stopped: tuple[Site, ...] = ()


class Part(Struct, frozen=True):
    """What is known about the part of a line that belongs to one function.

    ``guards`` decide whether the line runs, and ``conditions`` on the line whether other lines do.
    """

    ref: FunctionRef
    runs: str
    axes: tuple[str, ...]
    axes_open: bool
    guards: tuple[Guard, ...] = ()
    values: tuple[Variation, ...] = ()
    calls: tuple[CallNote, ...] = ()
    conditions: tuple[Guard, ...] = ()


class Explanation(Struct, frozen=True):
    """What is known about a line. ``read``: the file is one of those that were analysed."""

    path: Path
    row: int
    parts: tuple[Part, ...]
    read: bool = True


class Explainer:
    """Queries the analyses about single lines."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        effects: Effects,
        facets: Facets,
        orders: tuple[Origins, ...],
        divergences: Divergences,
        placement: Placement,
    ) -> None:
        self.ev = evaluator
        self.project: Project = evaluator.project
        self.reach = reach
        self.effects = effects
        self.facets = facets
        self.orders = orders
        self.divergences = divergences
        self.placement = placement
        self.control = evaluator.once(Control)
        self.terms = Terms(effects, evaluator.once(Conditions))
        self.uniform = Uniform(evaluator.project)

    def line(self, path: Path, row: int) -> Explanation:
        """Everything about the code that begins on a line, or about the innermost that it is in; rows count from 1."""
        module = self.project.modules.get(path)
        if module is None:
            return Explanation(path, row, (), read=False)
        inside: list[tuple[int, int]] = []
        begun: dict[FunctionRef, dict[int, list[int]]] = {}
        for function in module.summary.functions:
            rows = begun[FunctionRef(path, function.index)] = {}
            for number, span in enumerate(function.spans):
                first, last = (module.summary.position(end)[0] for end in span)
                rows.setdefault(first, []).append(number)
                if first < row <= last and not isinstance(function.operations[number], (s.MakeFunction, s.MakeClass)):
                    inside.append((last - first, first))
        said = {}
        for begins in (row, *(first for _, first in sorted(inside))):
            parts = [self._part(ref, rows[begins]) for ref, rows in begun.items() if begins in rows]
            say = tuple(part for part in parts if part.values or part.calls or part.guards or part.conditions)
            said[begins] = Explanation(path, begins, say)
            if any(part.values or part.calls or part.conditions for part in parts):
                return said[begins]
        return said[row]

    def _part(self, ref: FunctionRef, numbers: list[int]) -> Part:
        frame = self.ev.free_frame(ref)
        function = self.ev.function(frame)
        axes = self.reach.around_of(ref)
        block = function.block_of[numbers[0]]
        return Part(
            ref,
            self._runs(ref),
            tuple(sorted(axes.names)),
            axes.open,
            tuple(self._with_silence(frame, guard) for guard in self.guards(frame, block)),
            tuple(self._values(frame, numbers)),
            tuple(self.call(frame, n, o) for n in numbers if isinstance(o := function.operations[n], s.Call)),
            tuple(self._conditions(frame, numbers)),
        )

    def _runs(self, ref: FunctionRef) -> str:
        function = self.project.function(ref)
        if function.kind == "module":
            return "it runs on the host, when the module is imported or started"
        host, traced = ref in self.reach.host, ref in self.reach.traced
        if host and traced:
            return "it runs on the host, and while JAX traces it"
        return "it runs while JAX traces it" if traced else "it runs on the host"

    def _with_silence(self, frame: Frame, guard: Guard) -> Guard:
        """The guard, with why no rule reports it."""
        counts_as = self.ev.decided(frame, guard.site.number) if guard.answer is not None else None
        if counts_as is not None and counts_as is not guard.answer:
            word = "true" if counts_as else "false"
            return replace(
                guard,
                silence=f"it counts as {word}: constants decide it, and the number of processes, which is above one",
            )
        if guard.answer is None or not guard.variation.facets:
            return guard
        if any(guard.site == found.branch for found in self.divergences.in_function(frame.ref)):
            return guard  # a rule does, possibly only for some callers of the function
        block = self.ev.function(frame).block_of[guard.site.number]
        return replace(guard, silence=self.divergences.why_none(frame, block))

    def guards(self, frame: Frame, block: int) -> Iterator[Guard]:
        """What decides whether a block of a function runs, without the silence of the rules."""
        function = self.ev.function(frame)
        for branch in self.control.branches(frame.ref):
            if block in branch.yes | branch.no:
                yield self._branch(frame, branch, block in branch.yes)
        for number, each in enumerate(function.blocks):
            test = function.operations[each.test] if each.test is not None else None
            if isinstance(test, s.Next) and block in self.ev.flow(frame.ref).loop_body(number) and block != number:
                yield self._loop(frame, test)

    def _conditions(self, frame: Frame, numbers: list[int]) -> Iterator[Guard]:
        """The conditions and loops on the line itself."""
        function = self.ev.function(frame)
        joined = [branch for branch in self.control.branches(frame.ref) if branch.test in numbers]
        for branch in joined:
            yield self._with_silence(frame, self._branch(frame, branch, True))
        told = {branch.test for branch in joined}
        for each in function.blocks:
            test = function.operations[each.test] if each.test is not None else None
            if isinstance(test, s.Next) and test.iterable in numbers:
                yield self._loop(frame, test)
            elif each.test in numbers and each.test not in told and any(e.kind == "true" for e in each.edges):
                leaves = Guard(Site(frame.ref, each.test), True, self.variation(frame, each.test))
                yield self._with_silence(frame, leaves)  # a loop, whose ways do not meet again

    def _branch(self, frame: Frame, branch: Branch, answer: bool) -> Guard:
        return Guard(Site(frame.ref, branch.test), answer, self.variation(frame, branch.test))

    def _loop(self, frame: Frame, test: s.Next) -> Guard:
        reason = self.facets.of_loop(frame, test.iterable)
        facets = [("number of iterations", each) for each in (reason.each() if reason is not None else ())]
        facets += (("order", found) for order in self.orders if (found := order.why(frame, test.iterable)))
        site = Site(frame.ref, test.iterable)
        return Guard(site, None, Variation(site, tuple(facets), self.facets.length.cut))

    def _values(self, frame: Frame, numbers: list[int]) -> Iterator[Variation]:
        """The names and attributes on the line, each once, and the values that are stored there."""
        function = self.ev.function(frame)
        told: set[object] = set()
        called = {o.function for n in numbers if isinstance(o := function.operations[n], s.Call)}
        for number in numbers:
            operation = function.operations[number]
            if isinstance(operation, (s.Load, s.Attribute, s.Store, s.Parameter)) and number not in called:
                key = getattr(operation, "name", None), getattr(operation, "base", None)
                if key in told or key[0] == "self" or self._names_code(frame, number):
                    continue
                told.add(key)
                yield self.variation(frame, number)

    def _names_code(self, frame: Frame, number: int) -> bool:
        """Whether a name refers to a module, a class or a function, which is the same on every process."""
        values = self.ev.value(frame, number)
        code = (External, ModuleValue, Namespace, FunctionValue, ClassValue)
        return bool(values) and all(isinstance(value, code) for value in values)

    def variation(self, frame: Frame, number: int) -> Variation:
        """Whether a value differs between processes."""
        found: list[tuple[str, Reason]] = []
        cut = False
        for name, walk in self._walks():
            reason = walk.why(frame, number)
            cut = cut or walk.cut
            told = {other.source for _, other in found}
            found += ((name, each) for each in (reason.each() if reason else ()) if each.source not in told)
        step = frame.code.operations[frame.code.root_of(number)]
        if isinstance(step, s.Next):
            found += (("order", reason) for order in self.orders if (reason := order.why(frame, step.iterable)))
        declared = self.uniform.stored(frame.ref, number)
        return Variation(Site(frame.ref, number), tuple(found), cut, declared, self.placement.where(frame, number))

    def _walks(self) -> Iterator[tuple[str, Origins]]:
        yield "content", self.facets.content
        yield "presence", self.facets.presence
        yield "length", self.facets.length
        yield "shape", self.facets.shape
        for order in self.orders:
            yield "order", order

    def call(self, frame: Frame, number: int, operation: s.Call) -> CallNote:
        """What is known about a call."""
        values = self.ev.value(frame, operation.function)
        effect = tuple(self.effects.of_call(frame, number, operation))
        return CallNote(
            Site(frame.ref, number),
            self._callees(values),
            self._callees(self._passed(frame, operation, values)),
            UNKNOWN in values or not values or any(self._strange(value) for value in values),
            self._extent(frame, values, effect),
            effect,
            len(effect) >= MAX_CALLS,
            written(self.terms.of_call(frame, number, operation)),
            self.variation(frame, number),
            self._stopped(frame, number, operation),
        )

    def _passed(self, frame: Frame, call: s.Call, values: Values) -> Values:
        """What callers, with which the analysis has entered the function, pass for the parameter that is called."""
        if not any(isinstance(value, Free) for value in values):
            return NOTHING
        entered = {edge.target.frame for edge in self.reach.callers.get(frame.ref, ())}
        found = NOTHING.union(*(self.ev.value(each, call.function) for each in entered))
        return frozenset(value for value in found if not isinstance(value, Free))

    def _stopped(self, frame: Frame, number: int, call: s.Call) -> tuple[Site, ...]:
        """The arguments that differ, if nothing in the result does, and something uses that."""
        if number in self.uniform.values(frame.ref):
            return ()  # its author says that it does not
        if not any(number in inputs(other) for other in frame.code.operations):
            return ()
        if any(walk.why(frame, number) is not None for _, walk in self._walks()):
            return ()
        given = [argument.value for argument in call.arguments]
        return tuple(Site(frame.ref, each) for each in given if self.facets.content.why(frame, each) is not None)

    def _strange(self, value: Value) -> bool:
        """Whether the value is a library function about which nothing is known."""
        known = isinstance(value, External) and self.ev.knowledge.get(value.name) is None
        return known and isinstance(value, External) and not value.name.startswith("builtins.")

    def _callees(self, values: Values) -> tuple[Callee, ...]:
        found = {callee for value in values if (callee := self._described(value)) is not None}
        return tuple(sorted(found, key=lambda each: (each.name, str(each.path or ""), each.row)))

    def _described(self, value: Value) -> Callee | None:
        if isinstance(value, External):
            return Callee(value.name)
        if isinstance(value, Applied):
            return Callee(f"what {value.name} returned")
        if isinstance(value, Free):
            return self._free(value)
        ref = value.ref if isinstance(value, FunctionValue) else getattr(getattr(value, "cls", value), "ref", None)
        if not isinstance(ref, FunctionRef):
            return None
        return Callee(self.project.function(ref).qualname, ref.path, self._first_row(ref))

    def _free(self, value: Free) -> Callee:
        """A parameter or field, as what it is: the function or class that has it does not run at the call."""
        function = self.project.function(value.ref)
        kind = "field" if function.kind == "class" else "parameter"
        owner = "a lambda" if function.kind == "lambda" else function.qualname
        return Callee(f"the {kind} {value.name} of {owner}", value.ref.path, self._first_row(value.ref))

    def _first_row(self, ref: FunctionRef) -> int:
        return self.project.modules[ref.path].summary.position(self.project.function(ref).start)[0]

    def _extent(self, frame: Frame, values: Values, effect: tuple[ParallelCall, ...]) -> str:
        """The extent of the call itself, in words."""
        if any(on_local_devices(value) for value in values):
            return "local: it runs on devices of this process"
        own = [call for call in effect if len(call.path) == 1]
        if own and own[0].strength == "strong":
            return "strong: it spans processes whatever its arguments are"
        if own:
            return "weak: it spans processes if its arguments do"
        if not effect and any(isinstance(value, Free) for value in values):
            return "that of whichever function it is"
        compiles = any(self.ev.kind(value) == "jit" for value in values if isinstance(value, Applied))
        if not effect and compiles and self.effects.spreading.keeps_to_itself(frame.ref.path):
            return "local: no file of this program, which starts its processes, puts an array on devices of several"
        return "not a parallel call itself" if effect else "not a parallel call"
