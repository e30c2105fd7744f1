"""How a program starts: what it computes before the processes are connected, and how often they are connected.

Each function has a *trace*: what it certainly does in order, as far as it concerns the start. Traces nest: the trace of
a call, and that of the import of a project module, is inserted at the call or import. A program that asks which process
it is needs something in the project that connects the processes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.calls import PASSING, Calls
from spmdlint.analysis.callgraph.entries import imported, upstream
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Site,
)
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.knowledge.startup import Startup
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Module
from spmdlint.program.summary import EXIT, FAILURE
from spmdlint.program.testfiles import is_test

MAX_EVENTS = 12
"""The most events kept for one function; the first ones decide."""
_ERRORS = ("RuntimeError", "ValueError")


class Event(Struct, frozen=True):
    """Something that concerns the start, and the calls and imports that lead to it, outermost first.

    ``sure``: it happens whenever the queried code runs.
    """

    kind: Literal["work", "initialize", "shutdown"]
    name: str
    path: tuple[Site, ...]
    sure: bool = True


class LateInitialize(Struct, frozen=True):
    """The backend is started by ``work`` before ``initialize``."""

    work: Event
    initialize: Event


class RepeatedInitialize(Struct, frozen=True):
    """A second call on a path, a call in a loop, or one that only some processes make, because of ``reason``."""

    again: Event
    first: Event | None = None
    branch: Site | None = None
    reason: Reason | None = None


class Starting:
    """Traces the program. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach, variance: Origins, known: Startup) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach
        self.variance = variance
        self.known = known
        self._memo: Memo[tuple[Event, ...]] = Memo((), ())

    # -- findings

    def late(self) -> Iterator[LateInitialize]:
        """Calls of initialize after work; each once, with the first work before it."""
        told: set[Site] = set()
        for ref in self._entries():
            events = self._whole(ref)
            first: Event | None = None
            for event in events:
                if event.kind == "work" and event.sure and first is None:
                    first = event
                elif event.kind == "initialize":
                    if first is not None and not event.sure and _comes_later(first.path, event.path):
                        continue  # a function that is called again decides as it did before
                    if first is not None and first.path[0] != event.path[0] and event.path[-1] not in told:
                        told.add(event.path[-1])
                        yield LateInitialize(first, event)
                    if event.sure:
                        break  # anything from here on comes after it

    def repeated(self) -> Iterator[RepeatedInitialize]:
        """Second calls, calls in loops, and calls under a condition that varies."""
        told: set[Site] = set()
        for ref in self._entries():
            first: Event | None = None
            for event in self._whole(ref):
                if event.kind == "shutdown":
                    first = None
                elif event.kind == "initialize" and event.sure:
                    if first is not None and first.path[0] != event.path[0] and event.path[-1] not in told:
                        told.add(event.path[-1])
                        yield RepeatedInitialize(event, first)
                    first = first or event
        for ref in self._entries():
            for found in (*self._in_loops(ref), *self._on_some_processes(ref)):
                if found.again.path[-1] not in told:
                    told.add(found.again.path[-1])
                    yield found

    def _entries(self) -> Iterator[FunctionRef]:
        """The functions to examine: those that reach a call of initialize."""
        for ref in sorted(self._upstream):
            if any(event.kind == "initialize" for event in self.trace(self.ev.free_frame(ref))):
                yield ref

    @cached_property
    def _upstream(self) -> set[FunctionRef]:
        return upstream(self.ev.project, self.reach, self.known.initialize)

    def _whole(self, ref: FunctionRef) -> tuple[Event, ...]:
        """The trace of a function, after its module's if nothing calls it: the module has run by then."""
        own = self.trace(self.ev.free_frame(ref))
        called = any(edge.caller.ref != ref for edge in self.reach.callers.get(ref, ()))
        module = self.ev.free_frame(FunctionRef(ref.path, 0))
        if ref.index == 0 or called or self.ev.project.function(ref).parent != 0:
            return own
        if not self.ev.decorators(ref, module).isdisjoint(self.known.elsewhere):
            return own  # it runs in a separate process, in which its module has not run: `ray.remote`
        before = self.trace(module)
        ran = {end for event in before for end in self._imported(event)}
        return (*before, *(event for event in own if ran.isdisjoint(self._imported(event))))

    def _in_loops(self, ref: FunctionRef) -> Iterator[RepeatedInitialize]:
        frame = self.ev.free_frame(ref)
        function = self.ev.function(frame)
        for block in sorted(self.reach.certainty.blocks(frame)):
            loop = self._around(function, block)
            if not loop:
                continue
            inside = [e for b in sorted(loop) for n in function.blocks[b].operations for e in self._at(frame, n)]
            if any(event.kind == "shutdown" for event in inside):
                continue
            for number in function.blocks[block].operations:
                for event in self._at(frame, number):
                    if event.kind == "initialize" and event.sure:
                        yield RepeatedInitialize(event)

    @staticmethod
    def _around(function: s.Function, block: int) -> set[int]:
        """The blocks on a cycle through a block on which nothing fails."""

        def steps(start: int) -> set[int]:
            found: set[int] = set()
            pending = [start]
            while pending:
                for edge in function.blocks[pending.pop()].edges:
                    if edge.kind != "except" and edge.target not in found:
                        found.add(edge.target)
                        pending.append(edge.target)
            return found

        after = steps(block)
        return {other for other in after if block in steps(other)} if block in after else set()

    def _on_some_processes(self, ref: FunctionRef) -> Iterator[RepeatedInitialize]:
        frame = self.ev.free_frame(ref)
        function = self.ev.function(frame)
        flow = self.ev.flow(ref)
        for number in sorted(self.ev.live_blocks(frame)):
            block = function.blocks[number]
            arms = [edge.target for edge in block.edges if edge.kind in ("true", "false")]
            if block.test is None or len(arms) != 2 or isinstance(function.operations[block.test], s.Caught):
                continue
            join = flow.joins_at(number)
            calls = [self._initializes(frame, flow.order(arm, without=join)) for arm in arms]
            fails = [FAILURE in flow.reachable(arm) and EXIT not in flow.reachable(arm) for arm in arms]
            if (calls[0] is None) == (calls[1] is None) or any(fails):
                continue
            reason = of_truth(self.variance, frame, block.test)
            event = calls[0] or calls[1]
            if reason is not None and reason.kind == "identity" and event is not None:
                yield RepeatedInitialize(event, branch=Site(ref, block.test), reason=reason)

    def _initializes(self, frame: Frame, blocks: list[int]) -> Event | None:
        function = self.ev.function(frame)
        for block in blocks:
            for number in function.blocks[block].operations:
                for event in self._at(frame, number):
                    if event.kind == "initialize":
                        return event
        return None

    # -- traces

    def trace(self, frame: Frame) -> tuple[Event, ...]:
        """The trace of a function: its events in order."""
        return self._memo.once(frame, lambda: self._trace(frame))

    def _trace(self, frame: Frame) -> tuple[Event, ...]:
        function = self.ev.function(frame)
        if function.generator:
            return ()
        certain_blocks = self.reach.certainty.blocks(frame)
        live = self.ev.live_blocks(frame)
        found: list[Event] = []
        ran: set[tuple[Site, ...]] = set()
        for block in self.ev.flow(frame.ref).order(s.ENTRY):
            if block not in live:
                continue
            for number in frame.code.starting[block]:
                for event in self._at(frame, number):
                    sure = event.sure and block in certain_blocks
                    if not ran.isdisjoint(imports := self._imported(event)):
                        continue  # a module runs when it is first imported
                    if event.kind == "work" and (not sure or (found and found[-1].kind == "work")):
                        continue  # the first one is enough
                    found.append(replace(event, sure=sure))
                    ran |= imports
                    if len(found) == MAX_EVENTS:
                        return tuple(found)
        return tuple(found)

    def _imported(self, event: Event) -> set[tuple[Site, ...]]:
        """The rest of the path after each import that leads to an event: equal for two events of one module run."""
        path = event.path
        operations = (self.ev.project.function(site.ref).operations[site.number] for site in path)
        return {path[n + 1 :] for n, operation in enumerate(operations) if isinstance(operation, s.Import)}

    def _at(self, frame: Frame, number: int) -> Iterator[Event]:
        """The events of one operation."""
        operation = self.ev.function(frame).operations[number]
        site = Site(frame.ref, number)
        if isinstance(operation, s.Import):
            for path in imported(self.ev.project, self.ev.project.modules[frame.ref.path], operation):
                module = self.ev.free_frame(FunctionRef(path, 0))
                events = list(self._below(site, module))
                left_out = as_script(module) if events else frozenset()
                block_of = module.code.function.block_of
                yield from (event for event in events if block_of[event.path[1].number] not in left_out)
        elif isinstance(operation, s.MakeClass):
            yield from self._below(site, self.ev.free_frame(FunctionRef(frame.ref.path, operation.body)))
        elif isinstance(operation, s.Call):
            yield from self._call(frame, site, operation)

    def _below(self, site: Site, frame: Frame) -> Iterator[Event]:
        caught = handles(self.ev, self.ev.free_frame(site.ref), site.number, *_ERRORS)
        for event in self.trace(frame):
            if event.kind == "initialize" and caught:
                continue
            yield replace(event, path=(site, *event.path))

    def _call(self, frame: Frame, site: Site, operation: s.Call) -> Iterator[Event]:
        callee = self.ev.callee(frame, operation)
        if isinstance(callee, External):
            yield from self._library(frame, site, callee.name)
        elif isinstance(callee, Applied):
            known = self.ev.knowledge.get(callee.name)
            if known is not None and known.kind in ("jit", "map") and self.ev.argument(callee, known.function[0]):
                yield Event("work", self._function_name(callee), (site,))
            elif known is not None and known.kind in ("transform", "currying"):
                yield from self._targets(frame, site, operation, callee)
        elif isinstance(callee, (FunctionValue, ClassValue)):
            yield from self._targets(frame, site, operation, callee)

    def _targets(
        self, frame: Frame, site: Site, operation: s.Call, callee: Applied | FunctionValue | ClassValue
    ) -> Iterator[Event]:
        arguments: Arguments = self.ev.arguments(frame, operation)
        for target in self.calls.targets(callee, arguments, frame.depth + 1):
            if target.way in PASSING:
                yield from self._below(site, target.frame)

    def _library(self, frame: Frame, site: Site, name: str) -> Iterator[Event]:
        if name in self.known.initialize:
            if not (expects_failure(self.ev, frame, site.number) or handles(self.ev, frame, site.number, *_ERRORS)):
                yield Event("initialize", name, (site,))
        elif name in self.known.shutdown:
            yield Event("shutdown", name, (site,))
        elif self.known.works(name):
            yield Event("work", name, (site,))

    def _function_name(self, callee: Applied) -> str:
        known = self.ev.knowledge.get(callee.name)
        for function in self.calls.functions_in(known, callee.arguments) if known is not None else ():
            ref = getattr(function, "ref", None)
            if ref is not None:
                return self.ev.project.function(ref).name
        return callee.name


def _comes_later(one: Sequence[Site], other: Sequence[Site]) -> bool:
    """Whether, of two calls of one function, the event of the first call comes later there than that of the second."""
    if one[-1].ref == other[-1].ref:
        return one[-1].number > other[-1].number
    parts = next((pair for pair in zip(one[1:], other[1:], strict=False) if pair[0] != pair[1]), None)
    return parts is not None and parts[0].ref == parts[1].ref and parts[0].number > parts[1].number


def as_script(module: Frame) -> frozenset[int]:
    """The blocks of a module that run only if it is the program: under ``if __name__ == "__main__"``."""
    found: set[int] = set()
    operations = module.code.operations
    for number, block in enumerate(module.code.function.blocks):
        test = operations[block.test] if block.test is not None else None
        if not isinstance(test, s.Compare) or test.operators != ("==",):
            continue
        sides = [operations[side] for side in test.operands]
        asks = any(isinstance(side, s.Load) and side.name == "__name__" for side in sides)
        if asks and any(isinstance(side, s.Const) and side.value == "__main__" for side in sides):
            for edge in block.edges:
                if edge.kind == "true":
                    found |= module.code.flow.guarded(number, edge.target)
    return frozenset(found)


class Unconnected(Struct, frozen=True):
    """Where a program first asks, and the name of what it asks; the other programs of the project that ask as well."""

    asked: Site
    name: str
    program: Path
    others: tuple[Path, ...] = ()


def unconnected(evaluator: Evaluator, reach: Reach, known: Startup) -> Iterator[Unconnected]:
    """One finding for the files that name one another, at the question that their first program leads to."""
    project = evaluator.project
    asking = upstream(project, reach, known.asks)
    components: dict[int, list[Module]] = {}
    for path in sorted(project.modules):
        components.setdefault(project.component[path], []).append(project.modules[path])
    for modules in components.values():
        if any(_connects(module, known) for module in modules):
            continue
        found: list[tuple[Path, Site, str]] = []
        for module in modules:
            top = evaluator.free_frame(FunctionRef(module.path, 0))
            starts = as_script(top) and not is_test(module.path, project.roots[-1])
            asked = _asked(module, evaluator, reach, asking, known) if starts else None
            found += [(module.path, *asked)] if asked is not None else []
        if found:
            # A program that asks itself tells more than one that only uses a library which does.
            (path, site, name), *others = sorted(found, key=lambda each: each[0] != each[1].ref.path)
            yield Unconnected(site, name, path, tuple(other for other, _, _ in others))


def _connects(module: Module, known: Startup) -> bool:
    """Whether a file names anything that may connect processes, of whatever library: `distributed.initialize`."""
    for function in module.summary.functions:
        for operation in function.operations:
            if isinstance(operation, s.Attribute):
                base = function.operations[operation.base]
                around = base.name if isinstance(base, (s.Attribute, s.Load)) else ""
                name = f"{around}.{operation.name}"
            elif isinstance(operation, s.Import):
                name = f"{operation.module}.{operation.name}"
            else:
                name = function.name
            if any(all(part in name.lower() for part in parts) for parts in known.connecting):
                return True
    return False


def _asked(
    module: Module, evaluator: Evaluator, reach: Reach, asking: Collection[FunctionRef], known: Startup
) -> tuple[Site, str] | None:
    """Where a program asks, itself or in what it calls, and what; None if it does not."""
    seen: set[FunctionRef] = set()
    pending = [FunctionRef(module.path, function.index) for function in module.summary.functions]
    while pending:
        ref = pending.pop(0)
        if ref in seen or ref not in asking:
            continue
        seen.add(ref)
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            for value in evaluator.value(frame, call.function):
                if isinstance(value, External) and value.name in known.asks:
                    return Site(ref, number), value.name
        pending += [edge.target.frame.ref for edge in reach.edges.get(frame, ())]
    return None
