"""Exceptions that occur on one process and not on another, and the control flow that follows from them.

What a file system, a network, a queue or a process's own data raises is raised on one process. What the program itself
raises is raised on all processes, as far as anyone can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import clauses_around
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    NOTHING,
    Applied,
    ClassValue,
    Collection,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    Value,
    Values,
    certain,
)
from spmdlint.analysis.variance.reason import Reason
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_CAUGHT = (s.Caught,)
_RAISE = (s.Raise,)

FailingCall: TypeAlias = Callable[[Frame, int, s.Call], bool]

_BROAD = frozenset(names("broad_errors"))
_CALM = names("calm_modules")
_NEVER_FAIL = frozenset(("identity", "clock", "entropy"))
_WHAT = {
    "files": "what this process finds outside the program",
    "completion": "how far this process's own queues and threads have got",
}
_RAISING = 4
"""The most calls that may lead from a `try` to a `raise` of the project."""
_DEPTH = 3
"""The depth to which calls of the project's own functions are searched for what may fail."""


class Way(Struct, frozen=True):
    """A call of a function of the project, on the way to a `raise`."""

    at: int
    call: s.Call
    callee: FunctionValue


class OwnRaise(Struct, frozen=True):
    """A `raise` in a function of the project, and the calls that lead to it, starting with one in a `try`."""

    way: tuple[Way, ...]
    number: int


class Raised:
    """Decides which handlers are entered on some processes only. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.knowledge = evaluator.knowledge

    def why(self, frame: Frame, number: int) -> Reason | None:
        """Why a clause, given by its operation, catches an exception on some processes only."""
        caught = self.ev.function(frame).operations[number]
        block = self.ev.function(frame).block_of[number]
        if not isinstance(caught, s.Caught):
            return None
        kinds = self.ev.value(frame, caught.kind) if caught.kind is not None else None
        named = self._from_outside(kinds) if kinds is not None else None
        site = Site(frame.ref, number)
        if named is not None:
            name, source = named
            if not self.may_fail(frame, block, self._is_no_map):
                return None
            return Reason(
                site, f"{name.removeprefix('builtins.')} depends on {_WHAT.get(source, 'this process alone')}", source
            )
        if kinds is not None and not any(map(_is_broad, kinds)):
            return None
        if self.may_fail(frame, block, self.reads):
            return Reason(site, "a read in this try can fail on one process and not on another", "files")
        return None

    def happens_to_one(self, kinds: Values) -> bool:
        """Whether one of these exceptions comes from outside the program, or stands for all exceptions."""
        return any(map(_is_broad, flat(kinds))) or self._from_outside(kinds) is not None

    def _from_outside(self, kinds: Values) -> tuple[str, str] | None:
        """The first of some kinds of exceptions that comes from outside the program, and its source."""
        for kind in flat(kinds):
            if isinstance(kind, ClassValue):
                found = self._own_kind(kind)
                if found is not None:
                    return found
            known = self.knowledge.get(kind.name) if isinstance(kind, External) else None
            if known is not None and known.raised is not None:
                return known.name, known.raised
        return None

    def _own_kind(self, cls: ClassValue) -> tuple[str, str] | None:
        """The source of an exception of the project's own, which derives from an outside one or is raised for one."""
        name = self.ev.project.function(cls.ref).name
        bases = (self.knowledge.get(base) for base in self.ev.objects.library_bases(cls))
        sources = [str(known.raised) for known in bases if known is not None and known.raised is not None]
        sources += self._raised_for.get(cls.ref, [])
        return (name, sources[0]) if sources else None

    @cached_property
    def _raised_for(self) -> dict[FunctionRef, list[str]]:
        """For the project's own exceptions that handlers raise in place of others, the sources of those."""
        found: dict[FunctionRef, list[str]] = {}
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for block, _, caught in frame.code.each(_CAUGHT):
                kinds = self.ev.value(frame, caught.kind) if caught.kind is not None else NOTHING
                known = [self.knowledge.get(kind.name) for kind in flat(kinds) if isinstance(kind, External)]
                sources = [str(each.raised) for each in known if each is not None and each.raised is not None]
                for cls in self._raised_in(frame, block) if sources else ():
                    found.setdefault(cls.ref, []).extend(sources)
        return found

    def _raised_in(self, frame: Frame, clause: int) -> Iterator[ClassValue]:
        """The project's own exceptions that a handler raises."""
        found = ways(frame.code.function, frame.code.flow, clause)
        inside = handled(frame.code.flow, *found) if found is not None else frozenset()
        for block, _, operation in frame.code.each(_RAISE):
            made = frame.code.operations[operation.exception] if operation.exception is not None else None
            if block in inside and isinstance(made, s.Call):
                yield from (v for v in self.ev.value(frame, made.function) if isinstance(v, ClassValue))

    # -- exceptions that the project raises

    def raises(self, frame: Frame, number: int) -> Iterator[OwnRaise]:
        """The `raise` statements, in functions called from the `try` of a clause, of what the clause catches."""
        function = self.ev.function(frame)
        caught = function.operations[number]
        kinds = self.ev.value(frame, caught.kind) if isinstance(caught, s.Caught) and caught.kind is not None else None
        tried = tried_by(frame.code.flow, function.block_of[number]) if kinds is not None else []
        yield from self._raises_in(frame, tried, kinds or NOTHING, ())

    def _raises_in(
        self, frame: Frame, blocks: Iterable[int], kinds: Values, way: tuple[Way, ...]
    ) -> Iterator[OwnRaise]:
        for at, call in frame.code.calls_in(blocks):
            if way and self._is_tried(frame, at, kinds):
                continue  # an exception from there is caught on the way
            for callee in map(self._called, ordered(self.ev.value(frame, call.function))):
                if isinstance(callee, FunctionValue):
                    inside, further = self.ev.free_frame(callee.ref), (*way, Way(at, call, callee))
                    for _, raised, operation in inside.code.each(_RAISE):
                        if self._is_caught(inside, operation, kinds):
                            yield OwnRaise(further, raised)
                    if len(further) < _RAISING:
                        yield from self._raises_in(inside, sorted(self.ev.live_blocks(inside)), kinds, further)

    def _called(self, callee: Value) -> Value | None:
        """What runs when a value is called: for an object of the project, its ``__call__``."""
        if isinstance(callee, Instance):
            return certain(self.ev.objects.attribute(callee, "__call__"))
        return callee

    def _is_tried(self, frame: Frame, at: int, kinds: Values) -> bool:
        """Whether an operation is inside a `try` with a clause for one of these exceptions, or for all."""
        for clause in clauses_around(frame.code.function, at):
            given = set(flat(self.ev.value(frame, clause.kind))) if clause.kind is not None else None
            if given is None or not given.isdisjoint(flat(kinds)) or any(map(_is_broad, given)):
                return True
        return False

    def _is_caught(self, frame: Frame, operation: s.Raise, kinds: Values) -> bool:
        """Whether a raised exception is of one of these kinds, as far as is known."""
        if operation.exception is None:
            return False
        made = frame.code.operations[operation.exception]
        kind = made.function if isinstance(made, s.Call) else operation.exception
        caught = set(flat(kinds))
        for value in self.ev.value(frame, kind):
            lineage = self.ev.objects.lineage(value) if isinstance(value, ClassValue) else [value]
            if not caught.isdisjoint(lineage):
                return True
        return False

    # -- what may fail in a `try`

    def may_fail(self, frame: Frame, block: int, fails: FailingCall) -> bool:
        """Whether the `try` of a clause has a call that may fail, directly or in a function of the project it calls."""
        return any(self._fails_in(frame, tried, fails, _DEPTH) for tried in tried_by(frame.code.flow, block))

    def _fails_in(self, frame: Frame, block: int, fails: FailingCall, depth: int) -> bool:
        operations = self.ev.function(frame).operations
        calls = ((n, operations[n]) for n in self.ev.function(frame).blocks[block].operations)
        return any(self._call_fails(frame, n, call, fails, depth) for n, call in calls if isinstance(call, s.Call))

    def _call_fails(self, frame: Frame, number: int, operation: s.Call, fails: FailingCall, depth: int) -> bool:
        callees = self.ev.value(frame, operation.function)
        own = [callee for callee in callees if isinstance(callee, FunctionValue)]
        if own and depth and len(own) == len(callees):
            inside = [self.ev.free_frame(callee.ref) for callee in own]
            return any(
                self._fails_in(f, block, fails, depth - 1) for f in inside for block in sorted(self.ev.live_blocks(f))
            )
        return fails(frame, number, operation)

    def _is_no_map(self, frame: Frame, _: int, operation: s.Call) -> bool:
        callees = self.ev.value(frame, operation.function)
        return not any(isinstance(callee, Applied) for callee in callees) and not self.is_calm(callees)

    def is_calm(self, callees: Values) -> bool:
        """Whether calls of these never fail on one process alone: they compute, ask for the rank, or are parallel."""
        names = [callee.name for callee in callees if isinstance(callee, External)]
        return bool(names) and all(self._is_calm(name) for name in names)

    def _is_calm(self, name: str) -> bool:
        if name.startswith(_CALM) and name != "builtins.open":
            return True
        known = self.knowledge.get(name)
        if known is not None and ((known.parallel and not known.checkpoint) or known.source in _NEVER_FAIL):
            return True
        return name.endswith(("Error", "Exception"))

    def reads(self, frame: Frame, _: int, operation: s.Call) -> bool:
        """Whether a call certainly reads from a file system or a queue."""
        for callee in ordered(self.ev.value(frame, operation.function)):
            known = self.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and (known.reads or known.source in ("files", "completion")):
                return True
        return False


def _is_broad(kind: object) -> bool:
    """Whether nearly all exceptions are of this kind."""
    return isinstance(kind, External) and kind.name in _BROAD


def flat(kinds: Values) -> Iterator[object]:
    """The kinds of exceptions that a clause names, one by one: ``except (A, B)``."""
    for kind in ordered(kinds):
        if isinstance(kind, Collection):
            for element in kind.elements:
                yield from flat(element)
        else:
            yield kind


# -- control flow


def tried_by(flow: Flow, block: int) -> list[int]:
    """The blocks of the `try` that a clause belongs to: those with an edge to it, or to a clause before it."""
    function = flow.function
    clauses, pending = {block}, [block]
    while pending:
        clause = pending.pop()
        for number in flow.predecessors[clause]:
            goes_on = any(edge.kind == "false" and edge.target == clause for edge in function.blocks[number].edges)
            if goes_on and number not in clauses and flow.is_clause(number):
                clauses.add(number)
                pending.append(number)
    sources = {number for clause in clauses for number in flow.predecessors[clause]} - clauses
    return [
        number
        for number in sorted(sources)
        if any(edge.kind == "except" and edge.target in clauses for edge in function.blocks[number].edges)
    ]


def ways(function: s.Function, flow: Flow, block: int) -> tuple[int, int, list[int]] | None:
    """The target of a clause, the block where it meets the path without an exception, and the blocks of the `try`."""
    target = next((edge.target for edge in function.blocks[block].edges if edge.kind == "except"), None)
    tried = tried_by(flow, block)
    if target is None or not tried:
        return None
    return target, flow.joins_at(tried[0]), tried


def handled(flow: Flow, handler: int, join: int, tried: list[int]) -> frozenset[int]:
    """The blocks that control reaches only through a clause."""
    return frozenset(flow.reachable(handler, without=join) - calm(flow, join, tried))


def calm(flow: Flow, join: int, tried: list[int]) -> set[int]:
    """The blocks that control reaches from a `try` if nothing is raised, including the `try` itself."""
    return set(tried) | {block for start in tried for block in flow.order(start, join)}
