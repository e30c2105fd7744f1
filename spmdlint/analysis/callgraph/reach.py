"""Who calls whom, over the whole program: the call graph, what is traced, and which axes may be bound where.

Every function is visited once with nothing known of its callers, and once for each way in which it is called with
something known. Calls whose callee is in doubt lead nowhere: what they run is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct, field

from spmdlint.analysis.callgraph.byarguments import by_arguments
from spmdlint.analysis.callgraph.bydevices import unknown_map
from spmdlint.analysis.callgraph.calls import NO_AXES, Axes, Calls, Target
from spmdlint.analysis.callgraph.constructed import Constructed
from spmdlint.analysis.callgraph.objectsmade import holds_code, method_frames
from spmdlint.analysis.evaluation.certainty import Certainty
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import RAISING, expects_failure
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
    """One call that one frame makes, by its number there; ``certain`` if no undecided branch guards it."""

    caller: Frame
    number: int
    target: Target
    certain: bool = True

    @property
    def site(self) -> Site:
        """Where it is written. There are many calls, and few are asked."""
        return Site(self.caller.ref, self.number)


class MapUse(Struct, frozen=True):
    """A library's function that the linter knows, called in a frame: for ``Reach.uses``, one applied to a function."""

    frame: Frame
    site: Site
    applied: Applied


class Reach(Struct):
    """The result of the visit.

    ``traced`` functions run while JAX traces; ``host`` ones (also) run outside. A frame is ``trusted`` if nothing is
    assumed of its callers, or if it is entered without an undecided branch from one that is: what a test passes to a
    trainer says little about code that the trainer reaches under other settings only. ``inner`` maps are the function
    of another one: the axes of that are bound around them. ``spanning`` frames may make parallel calls themselves.
    ``use_calls`` are the calls of each map or jit, ``use_handed`` those that hand one on, as to `jax.lax.scan`.
    ``complete``: no call was taken without its arguments because there were too many frames.
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

    def calling(self, names: Iterable[str]) -> list[FunctionRef]:
        """The functions that call one of a library's by these names, in the order of the text."""
        found = {ref for name in names for ref in self.library_calls.get(name, ())}
        return sorted(found, key=lambda ref: (ref.path, ref.index))

    def around_of(self, ref: FunctionRef) -> Axes:
        return self.around.get(ref, NO_AXES)


MAX_FRAMES = 100_000
"""Frames visited in one program; beyond it, calls with known arguments are not told apart any more."""


class Visitor:
    """Builds a :class:`Reach`."""

    def __init__(self, evaluator: Evaluator, calls: Calls) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = Reach(Certainty(evaluator), Constructed(evaluator))
        self._seen: set[Frame] = set()
        self._made: list[Instance] = []  # grows while it is gone over
        self._known: set[Instance] = set()
        self._wrapped: list[Frame] = []  # what decorators of the project made of functions, whoever calls it

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
        """A call as if nothing were known of its arguments."""
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
                if not isinstance(operation, s.Call):
                    if isinstance(operation, s.Collected) and self._makes_known(frame, function, operation.element):
                        yield from self._made_in_rounds(frame, number, block in certain)
                    continue
                if operation.decorator:
                    self._wrap(frame, number)
                callees = self.ev.value(frame, operation.function)
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
        # What is unknown, or a function of the project, makes nothing here that the linter knows.
        for value in self.ev.in_order(self.ev.value(frame, number)) if made else ():
            yield from self._use(frame, site, value, sure)

    def _hand_on(self, callee: External, arguments: Arguments, site: Site) -> None:
        """Note the maps and jits that a library's function is given to call."""
        known = self.ev.knowledge.get(callee.name)
        for handed in self.calls.functions_in(known, arguments) if known is not None else ():
            if isinstance(handed, Applied):
                self.reach.use_handed.setdefault(handed.site, []).append(site)

    def _wrap(self, frame: Frame, number: int) -> None:
        """Note the function that a decorator put in the place of another one."""
        made = only(self.ev.value(frame, number))
        if isinstance(made, FunctionValue) and made.outer is not None and made.outer.ref != frame.ref:
            entered = self.ev.entered_frame(made, Arguments(open=True), frame.depth + 1)
            if entered is not None:
                self._wrapped.append(entered)

    def _make(self, callee: Value, arguments: Arguments) -> None:
        """Note what is made here, if it is an object whose methods run code that it is given."""
        if isinstance(callee, ClassValue) and holds_code(self.ev, arguments):
            instance = Instance(callee, arguments)
            if instance not in self._known:
                self._known.add(instance)
                self._made.append(instance)

    def _any_spans(self, frame: Frame, call: s.Call, callees: Values) -> bool:
        """May what is called be a parallel call itself, as far as it is a library's."""
        if any(map(self._spans, callees)) or unknown_map(self.ev, frame, call, callees) is not None:
            return True
        if any(map(self._spans, self.calls.run_by(callees, frame, call))):
            return True
        method = frame.code.operations[call.function]
        if not isinstance(method, s.Attribute) or method.name not in self._spanning_methods:
            return False
        return self._spans(by_arguments(self.ev, frame, call))

    def _spans(self, callee: Value | None) -> bool:
        return isinstance(callee, (External, Applied)) and self._is_spanning(callee.name)

    def _is_spanning(self, name: str) -> bool:
        known = self.ev.knowledge.get(name)
        return known is not None and (known.parallel or known.kind == "jit" or known.spans)

    @cached_property
    def _spanning_methods(self) -> frozenset[str]:
        """The names of the methods that :func:`by_arguments` may find to be parallel calls: for others it may rest."""
        functions = self.ev.knowledge.functions
        classes = {known.given_to for known in functions.values() if known.given_to}
        parts = (name.rpartition(".") for name in functions if self._is_spanning(name))
        return frozenset(method for owner, _, method in parts if owner in classes)

    def _makes_known(self, frame: Frame, function: s.Function, element: int) -> bool:
        """Is an element of a comprehension a call of a library's function that the linter knows."""
        call = function.operations[element]
        callee = only(self.ev.value(frame, call.function)) if isinstance(call, s.Call) else None
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        return known is not None and known.kind is not None

    def _made_in_rounds(self, frame: Frame, number: int, sure: bool) -> Iterator[CallEdge]:
        """What a comprehension over what is known makes in each of its rounds."""
        value = only(self.ev.value(frame, number))
        made: tuple[Values, ...] = value.elements if isinstance(value, Collection) else ()
        if isinstance(value, DictionaryValue):
            made = tuple(values for _, values in value.items)
        for each in map(only, made):
            if isinstance(each, Applied) and each.site.ref == frame.ref:
                yield from self._use(frame, each.site, each, sure)

    def _use(self, frame: Frame, site: Site, value: Value, sure: bool) -> Iterator[CallEdge]:
        """A map made here: its function runs some time, under what the map binds."""
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
        for function in self.calls.functions_in(known, value.arguments):
            for target in self.calls.targets(function, Arguments(), frame.depth + 1, arrays=True):
                binds = self.calls.bound(value) if known.kind == "map" else NO_AXES
                yield CallEdge(
                    frame, site.number, Target(target.frame, known.kind, binds | target.binds, value.name), sure
                )

    def _put_inside(self, given: Value) -> None:
        """Note what is the function of a map, or is bound to some arguments there."""
        while isinstance(given, Applied):
            self.reach.inner.add(given.site)
            known = self.ev.knowledge.get(given.name)
            first = given.arguments.positional[:1]
            if known is None or known.kind != "currying" or not first:
                return
            given = only(first[0]) or UNKNOWN

    # -- what holds around a function

    def _spread(self) -> None:
        """Carry what is bound and traced from callers to callees until nothing changes."""
        reach = self.reach
        self._trust()
        pending: list[FunctionRef] = []
        for ref in self.ev.project.functions():
            entered = [edge for edge in reach.callers.get(ref, ()) if edge.caller.ref != ref]
            if not entered:
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

    def _trust(self) -> None:
        pending = [frame for frame in self.reach.frames if frame is self.ev.free_frame(frame.ref)]
        while pending:
            frame = pending.pop()
            if frame not in self.reach.trusted:
                self.reach.trusted.add(frame)
                edges = (edge for edge in self.reach.edges.get(frame, ()) if edge.certain)
                pending.extend(edge.target.frame for edge in edges if not self._is_to_fail(edge))

    def _is_to_fail(self, edge: CallEdge) -> bool:
        """Does a test expect a call to fail: what it passes says nothing of the code that is called."""
        tests = edge.caller.code.mentions(RAISING)
        return tests and expects_failure(self.ev, edge.caller, edge.number)

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
