"""The call graph of the whole program: who calls whom, what is traced, and which axes may be bound where.

Every function is visited once with nothing known about its callers, and once for each frame in which it is called with
known arguments. A call whose callee is uncertain has no edge: what it runs is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct, field

from spmdlint.analysis.callgraph.arguments import NO_AXES, Axes, by_arguments
from spmdlint.analysis.callgraph.calls import Calls, Target
from spmdlint.analysis.callgraph.constructed import Constructed, holds_code, method_frames
from spmdlint.analysis.evaluation.certainty import Certainty
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import RAISING, expects_failure
from spmdlint.analysis.evaluation.several import for_one_alone
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    UNKNOWN,
    Applied,
    Arguments,
    Called,
    ClassValue,
    Collection,
    DictionaryValue,
    External,
    Frame,
    Free,
    FunctionValue,
    Instance,
    Site,
    Unknown,
    Value,
    Values,
)
from spmdlint.analysis.evaluation.values import certain as only
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class CallEdge(Struct, frozen=True):
    """One call that a frame makes, by its number there; ``certain`` if no undecided branch guards it."""

    caller: Frame
    number: int
    target: Target
    certain: bool = True

    @property
    def site(self) -> Site:
        """The call site. It is computed on demand: there are many calls, and few queries."""
        return Site(self.caller.ref, self.number)


class MapUse(Struct, frozen=True):
    """A call of a known library function in a frame; in ``Reach.uses``, one that is applied to a function."""

    frame: Frame
    site: Site
    applied: Applied


class Reach(Struct):
    """The result of the visit.

    ``traced`` functions run while JAX traces; ``host`` ones (also) run outside. A frame is ``trusted`` if nothing is
    assumed about its callers, or if it is entered without an undecided branch from a trusted one: what a test passes to
    a trainer says little about code that the trainer only reaches under other settings. ``inner`` maps are the function
    of another map, whose axes are bound around them. ``spanning`` frames may make parallel calls themselves.
    ``use_calls`` are the calls of each map or jit, ``use_handed`` those that pass one on, for example to
    `jax.lax.scan`. ``complete``: no call lost its arguments because there were too many frames.
    """

    certainty: Certainty
    constructed: Constructed
    frames: list[Frame] = field(default_factory=list)
    edges: dict[Frame, list[CallEdge]] = field(default_factory=dict)
    callers: dict[FunctionRef, list[CallEdge]] = field(default_factory=dict)
    uses: list[MapUse] = field(default_factory=list)
    applications: list[MapUse] = field(default_factory=list)
    inner: set[Site] = field(default_factory=set)
    spanning: set[Frame] = field(default_factory=set)
    use_calls: dict[Site, list[Site]] = field(default_factory=dict)
    use_handed: dict[Site, list[Site]] = field(default_factory=dict)
    library_calls: dict[str, set[FunctionRef]] = field(default_factory=dict)
    around: dict[FunctionRef, Axes] = field(default_factory=dict)
    trusted: set[Frame] = field(default_factory=set)
    traced: set[FunctionRef] = field(default_factory=set)
    host: set[FunctionRef] = field(default_factory=set)
    complete: bool = True

    def only_traced(self, ref: FunctionRef) -> bool:
        """Whether a function runs while JAX traces, and never on the host otherwise."""
        return ref in self.traced and ref not in self.host

    def calling(self, names: Iterable[str]) -> list[FunctionRef]:
        """The functions that call a library function by one of these names, in source order."""
        found = {ref for name in names for ref in self.library_calls.get(name, ())}
        return sorted(found, key=lambda ref: (ref.path, ref.index))

    def around_of(self, ref: FunctionRef) -> Axes:
        return self.around.get(ref, NO_AXES)


MAX_FRAMES = 100_000
"""The most frames visited in one program; beyond it, calls are no longer distinguished by their arguments."""


class Visitor:
    """Builds a :class:`Reach`."""

    def __init__(self, evaluator: Evaluator, calls: Calls) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = Reach(Certainty(evaluator), Constructed(evaluator))
        self._seen: set[Frame] = set()
        self._made: list[Instance] = []  # grows while it is iterated over
        self._known: set[Instance] = set()
        self._wrapped: list[Frame] = []  # functions that the project's decorators made, whoever calls them

    def run(self) -> Reach:
        """Visit every function of the project."""
        for ref in self.ev.project.functions():
            self._visit_all(self.ev.free_frame(ref))
        for instance in self._made:
            for frame in method_frames(self.ev, instance):
                self._visit_all(frame)
        for frame in self._wrapped:
            self._visit_all(frame)
        self._spread()
        self.ev.memo.settle()
        return self.reach

    def _visit_all(self, start: Frame) -> None:
        pending = deque((start,))
        while pending:
            frame = pending.popleft()
            if frame in self._seen:
                continue
            self._seen.add(frame)
            self.reach.frames.append(frame)
            for edge in self._edges(frame):
                if edge.target.frame not in self._seen and len(self._seen) >= MAX_FRAMES:
                    edge = self._not_told_apart(edge)
                self.reach.edges.setdefault(frame, []).append(edge)
                self.reach.callers.setdefault(edge.target.frame.ref, []).append(edge)
                pending.append(edge.target.frame)

    def _not_told_apart(self, edge: CallEdge) -> CallEdge:
        """The call with nothing known about its arguments."""
        self.reach.complete = False
        target, free = edge.target, self.ev.free_frame(edge.target.frame.ref)
        return CallEdge(edge.caller, edge.number, Target(free, target.way, target.binds, target.library), edge.certain)

    def _edges(self, frame: Frame) -> Iterator[CallEdge]:
        code = frame.code
        function = code.function
        certain = self.reach.certainty.blocks(frame)
        for block in sorted(self.ev.live_blocks(frame)):
            for number in code.visited[block]:
                operation = function.operations[number]
                if isinstance(operation, s.Enter):
                    yield from self._of_with(frame, number, operation, block in certain)
                    continue
                if not isinstance(operation, s.Call):
                    if isinstance(operation, s.Collected) and self._makes_known(frame, function, operation.element):
                        yield from self._made_in_rounds(frame, number, block in certain)
                    continue
                if operation.decorator:
                    self._wrap(frame, number)
                callees = self.reach.constructed.may_call(frame, operation)
                if self._any_spans(frame, operation, callees):
                    self.reach.spanning.add(frame)
                if callees != ANYTHING:
                    yield from self._of_call(frame, number, operation, callees, block in certain)

    def _of_call(self, frame: Frame, number: int, operation: s.Call, callees: Values, sure: bool) -> Iterator[CallEdge]:
        site = Site(frame.ref, number)
        made = False
        for callee in self.ev.in_order(callees):
            if isinstance(callee, (Unknown, Free, Called)):
                continue
            made = made or isinstance(callee, (Applied, Instance))
            if isinstance(callee, External):
                self.reach.library_calls.setdefault(callee.name, set()).add(frame.ref)
                known = self.ev.knowledge.get(callee.name)
                if known is None:
                    continue
                made = True
                if known.kind != "apply":
                    continue
            if isinstance(callee, Applied):
                self.reach.use_calls.setdefault(callee.site, []).append(site)
            arguments = self.ev.arguments(frame, operation)
            if isinstance(callee, External):
                self._hand_on(callee, arguments, site)
            self._make(callee, arguments)
            for target in self.calls.targets(callee, arguments, frame.depth + 1):
                yield CallEdge(frame, number, target, sure)
        # An unknown value, or a function of the project, makes nothing here that the linter knows.
        for value in self.ev.in_order(self.ev.value(frame, number)) if made else ():
            yield from self._use(frame, site, value, sure)

    def _of_with(self, frame: Frame, number: int, operation: s.Enter, sure: bool) -> Iterator[CallEdge]:
        """The methods that ``with`` runs on an object of the project as it enters the block."""
        for owner in self.ev.in_order(self.ev.value(frame, operation.manager)):
            for method in self.ev.objects.attribute(owner, "__enter__") if isinstance(owner, Instance) else ():
                if isinstance(method, FunctionValue):
                    for target in self.calls.targets(method, Arguments(), frame.depth + 1):
                        yield CallEdge(frame, number, target, sure)

    def _hand_on(self, callee: External, arguments: Arguments, site: Site) -> None:
        """Record the maps and jits that are passed to a library function that calls them."""
        known = self.ev.knowledge.get(callee.name)
        for handed in self.calls.functions_in(known, arguments) if known is not None else ():
            if isinstance(handed, Applied):
                self.reach.use_handed.setdefault(handed.site, []).append(site)

    def _wrap(self, frame: Frame, number: int) -> None:
        """Record the function by which a decorator replaced another one."""
        made = only(self.ev.value(frame, number))
        if isinstance(made, FunctionValue) and made.outer is not None and made.outer.ref != frame.ref:
            entered = self.ev.entered_frame(made, Arguments(open=True), frame.depth + 1)
            if entered is not None:
                self._wrapped.append(entered)

    def _make(self, callee: Value, arguments: Arguments) -> None:
        """Record the object made here, if its methods run code that it is passed."""
        if isinstance(callee, ClassValue) and holds_code(self.ev, arguments):
            instance = Instance(callee, arguments)
            if instance not in self._known:
                self._known.add(instance)
                self._made.append(instance)

    def _any_spans(self, frame: Frame, call: s.Call, callees: Values) -> bool:
        """Whether the callee may itself be a parallel call of a library."""
        if any(map(self._spans, callees)):
            return True
        if any(map(self._spans, self.calls.run_by(callees, frame, call))):
            return True
        method = frame.code.operations[call.function]
        if not isinstance(method, s.Attribute) or method.name not in self._spanning_methods:
            return False
        return self._spans(by_arguments(self.ev, frame, call))

    def _spans(self, callee: Value | None) -> bool:
        callee = self.ev.objects.called(callee) if isinstance(callee, ClassValue) else callee
        if isinstance(callee, Applied) and callee.arguments.positional and self.ev.kind(callee) == "currying":
            return any(map(self._spans, callee.arguments.positional[0]))
        return isinstance(callee, (External, Applied)) and self._is_spanning(callee.name)

    def _is_spanning(self, name: str) -> bool:
        known = self.ev.knowledge.get(name)
        return known is not None and (known.parallel or known.kind == "jit" or known.spans)

    @cached_property
    def _spanning_methods(self) -> frozenset[str]:
        """The names of the methods that :func:`by_arguments` may resolve to parallel calls; it skips the others."""
        functions = self.ev.knowledge.functions
        classes = {known.given_to for known in functions.values() if known.given_to}
        parts = (name.rpartition(".") for name in functions if self._is_spanning(name))
        return frozenset(method for owner, _, method in parts if owner in classes)

    def _makes_known(self, frame: Frame, function: s.Function, element: int) -> bool:
        """Whether an element of a comprehension is a call of a known library function."""
        call = function.operations[element]
        callee = only(self.ev.value(frame, call.function)) if isinstance(call, s.Call) else None
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        return known is not None and known.kind is not None

    def _made_in_rounds(self, frame: Frame, number: int, sure: bool) -> Iterator[CallEdge]:
        """The uses of what a comprehension over known values makes in each iteration."""
        value = only(self.ev.value(frame, number))
        made: tuple[Values, ...] = value.elements if isinstance(value, Collection) else ()
        if isinstance(value, DictionaryValue):
            made = tuple(values for _, values in value.items)
        for each in map(only, made):
            if isinstance(each, Applied) and each.site.ref == frame.ref:
                yield from self._use(frame, each.site, each, sure)

    def _use(self, frame: Frame, site: Site, value: Value, sure: bool) -> Iterator[CallEdge]:
        """The use of a map made here: its function runs at some time, with the map's axes bound."""
        if not isinstance(value, Applied) or value.site != site:
            return
        known = self.ev.knowledge.get(value.name)
        if known is None:
            return
        use = MapUse(frame, value.site, value)
        self.reach.applications.append(use)
        if known.kind not in ("map", "jit", "transform"):
            return
        self.reach.uses.append(use)
        for parameter in known.function:
            for given in self.ev.argument(value, parameter) or ():
                self._put_inside(given)
        for function in self.calls.may_run(known, value.arguments):
            for target in self.calls.targets(function, Arguments(), frame.depth + 1, arrays=True):
                binds = self.calls.bound(value) if known.kind == "map" else NO_AXES
                yield CallEdge(
                    frame, site.number, Target(target.frame, known.kind, binds | target.binds, value.name), sure
                )

    def _put_inside(self, given: Value) -> None:
        """Record the function of a map, also if it is bound to some arguments there."""
        while isinstance(given, Applied):
            self.reach.inner.add(given.site)
            known = self.ev.knowledge.get(given.name)
            first = given.arguments.positional[:1]
            if known is None or known.kind != "currying" or not first:
                return
            given = only(first[0]) or UNKNOWN

    # -- what holds around a function

    def _spread(self) -> None:
        """Propagate bound axes and tracing from callers to callees until nothing changes."""
        reach = self.reach
        self._trust()
        alone = frozenset(self._called_alone())
        pending: list[FunctionRef] = []
        for ref in self.ev.project.functions():
            entered = [edge for edge in reach.callers.get(ref, ()) if edge.caller.ref != ref]
            if not entered and ref not in alone:
                reach.host.add(ref)
            pending.append(ref)
        out: dict[FunctionRef, list[CallEdge]] = {}
        for edges in reach.edges.values():
            for edge in edges:
                out.setdefault(edge.caller.ref, []).append(edge)
        queued = set(pending)
        while pending:
            ref = pending.pop()
            queued.discard(ref)
            for edge in out.get(ref, ()):
                callee = edge.target.frame.ref
                if self._carry(ref, callee, edge.target) and callee not in queued:
                    pending.append(callee)
                    queued.add(callee)

    def _called_alone(self) -> Iterator[FunctionRef]:
        """The functions that code for a job of one process calls."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for _, call in frame.code.calls_in(sorted(for_one_alone(self.ev, frame))):
                callee = only(self.ev.value(frame, call.function))
                if isinstance(callee, FunctionValue):
                    yield callee.ref

    def _trust(self) -> None:
        pending = [frame for frame in self.reach.frames if frame is self.ev.free_frame(frame.ref)]
        while pending:
            frame = pending.pop()
            if frame not in self.reach.trusted:
                self.reach.trusted.add(frame)
                edges = (edge for edge in self.reach.edges.get(frame, ()) if edge.certain)
                for edge in edges:  # where a test expects a call to fail, its arguments say nothing about what it calls
                    if not edge.caller.code.mentions(RAISING) or not expects_failure(self.ev, frame, edge.number):
                        pending.append(edge.target.frame)

    def _carry(self, caller: FunctionRef, callee: FunctionRef, target: Target) -> bool:
        reach = self.reach
        around = reach.around_of(callee) | reach.around_of(caller) | target.binds
        changed = around != reach.around_of(callee)
        reach.around[callee] = around
        traces = target.way in ("jit", "map") or (target.way == "apply" and target.library.startswith("jax.lax."))
        if (traces or caller in reach.traced) and callee not in reach.traced:
            reach.traced.add(callee)
            changed = True
        if not traces and caller in reach.host and callee not in reach.host:
            reach.host.add(callee)
            changed = True
        return changed
