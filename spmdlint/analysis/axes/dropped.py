"""Reductions whose result nothing uses. JAX's arrays are immutable: a call that only looks like an update does nothing.

In traced code every collective counts whose result is not stored at all; on the host that may be a barrier. If the
result is stored under a name that is not read any more, what is reduced must be used afterwards as it was; on the host,
functions that do nothing but reduce count as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import astuple

from spmdlint.analysis.axes.unreduced import Afterwards
from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, Value, certain
from spmdlint.knowledge.reading import reading
from spmdlint.knowledge.typing import typing_table
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_DEPTH = 4
"""The most functions, one inside another, that may stand between a call and the reduction that it makes."""
_COMPUTING = (s.Call, s.Binary, s.Unary, s.Compare)


class Dropped(Struct, frozen=True):
    """A call whose result nothing uses: its site, what it calls, and the name that the result is stored under."""

    site: Site
    function: str
    name: str | None
    on_host: bool


class DroppedResults:
    """Finds such calls. One per run."""

    def __init__(self, calls: Calls, reach: Reach) -> None:
        self.ev: Evaluator = calls.ev
        self.reach = reach
        self.calls = calls

    def found(self) -> Iterator[Dropped]:
        """Every such call, function by function."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            used: frozenset[int] | None = None
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                callee = self._run(frame, call)
                if not self._reduces(callee, _DEPTH):
                    continue
                direct = isinstance(callee, External) and self.ev.callee(frame, call) == callee
                on_host = not direct and ref not in self.reach.traced
                used = _used(frame) if used is None else used
                name = self._unread(frame, number, used)
                if name is None or (on_host and not name) or expects_failure(self.ev, frame, number):
                    continue
                if name and not self._goes_on(frame, number, call, callee):
                    continue
                yield Dropped(Site(ref, number), _called(self.ev, callee), name or None, on_host)

    def _run(self, frame: Frame, call: s.Call) -> Value | None:
        """What a call runs: what it calls, or the function that it applies to the leaves of a tree."""
        callee = self.ev.callee(frame, call)
        over_leaves = isinstance(callee, External) and typing_table().rules.get(callee.name) == "tree"
        if not over_leaves or len(call.arguments) != 2 or any(argument.star for argument in call.arguments):
            return callee
        applied = certain(self.ev.value(frame, call.arguments[0].value))
        if isinstance(applied, Applied) and self.ev.kind(applied) == "currying":
            return certain(applied.arguments.positional[0]) if applied.arguments.positional else None
        return applied

    def _goes_on(self, frame: Frame, number: int, call: s.Call, callee: Value | None) -> bool:
        """Whether the program uses what a call reduces afterwards, as it was before."""

        def excused(other: int) -> bool:
            operation = frame.code.operations[other]
            run = self.ev.callee(frame, operation)
            measures = isinstance(run, External) and run.name in reading().measures
            return measures or run == callee or self._reduces(run, _DEPTH)

        given = inputs(call) or (call.function,)  # a method reduces what its object has
        return Afterwards(self.ev, frame, number, excused).uses(given)

    def _unread(self, frame: Frame, number: int, used: frozenset[int]) -> str | None:
        """The name that a result is stored under and never read, "" for none at all; None if the result is used."""
        if number not in used:
            return ""
        stores = [n for n, store in frame.code.of_kind(s.Store) if store.value == number]
        others = sum(number in _numbers(operation) for operation in frame.code.operations)
        if len(stores) != 1 or others > 1 or stores[0] in used:
            return None
        store = frame.code.operations[stores[0]]
        assert isinstance(store, s.Store)
        function = frame.code.function
        if function.kind in ("module", "class") or store.name.startswith("_") or not function.binds(store.name):
            return None
        if self._is_read_inside(frame, store.name):
            return None
        loads = frame.code.loads.get(store.name, ())
        return None if any(stores[0] in self.ev.reaching(frame, each, store.name) for each in loads) else store.name

    def _is_read_inside(self, frame: Frame, name: str) -> bool:
        """Whether a function that is defined inside may read a name."""
        functions = self.ev.project.modules[frame.ref.path].summary.functions
        return any(
            isinstance(operation, (s.Load, s.Delete)) and operation.name == name
            for function in functions
            if function.parent is not None and function.index != frame.ref.index and function.parent >= frame.ref.index
            for operation in function.operations
        )

    def _reduces(self, callee: Value | None, depth: int) -> bool:
        """Whether a function does nothing but reduce its arguments, or some of them, over devices."""
        if isinstance(callee, External):
            known = self.ev.knowledge.get(callee.name)
            return known is not None and known.pure
        if not depth:
            return False
        if isinstance(callee, Applied):
            known = self.ev.knowledge.get(callee.name)
            if known is None or known.kind != "map":
                return False
            inside = list(self.calls.functions_in(known, callee.arguments))
            return len(inside) == 1 and self._reduces(inside[0], depth - 1)
        if not isinstance(callee, FunctionValue) or self.ev.project.function(callee.ref).generator:
            return False
        frame = self.ev.free_frame(callee.ref)
        returned = [each.value for _, each in frame.code.returns]
        return len(returned) == 1 and returned[0] is not None and self._holds(frame, returned[0], depth)

    def _holds(self, frame: Frame, number: int, depth: int) -> bool:
        """Whether a value is a reduction, or a tree that holds one."""
        operation = frame.code.operations[frame.code.root_of(number)]
        if isinstance(operation, s.DictDisplay):
            return any(self._holds(frame, value, depth) for value in operation.values)
        if not isinstance(operation, s.Call) or any(self._is_computed(frame, each) for each in inputs(operation)):
            return False
        callees = self.ev.value(frame, operation.function)
        run = [*self.calls.run_by(callees, frame, operation)]
        return any(self._reduces(each, depth - 1) for each in (run or callees))

    def _is_computed(self, frame: Frame, number: int) -> bool:
        """Whether a function computes a value, and was not given it, whole or in parts."""
        operations, pending, seen = frame.code.operations, [number], set[int]()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            operation = operations[number]
            if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
                pending += self.ev.reaching(frame, number, operation.name)
            elif isinstance(operation, _COMPUTING):
                return True
            else:
                pending += inputs(operation)
        return False


def _called(ev: Evaluator, callee: Value | None) -> str:
    if isinstance(callee, External):
        return callee.name.rpartition(".")[2]
    if not isinstance(callee, FunctionValue):
        return "this map"
    function = ev.project.function(callee.ref)
    return "this lambda" if function.kind == "lambda" else f"{function.name}()"


def _used(frame: Frame) -> frozenset[int]:
    """The operations that another one, or a branch, uses; perhaps some more."""
    found = {number for operation in frame.code.operations for number in _numbers(operation)}
    return frozenset(found | {block.test for block in frame.code.function.blocks if block.test is not None})


def _numbers(operation: object) -> Iterator[int]:
    """All numbers in an operation: those of the operations it uses, and a few that mean something else."""
    if isinstance(operation, s.Const):
        return
    fields = astuple(operation) if isinstance(operation, Struct) else operation
    for field in fields if isinstance(fields, tuple) else ():
        if type(field) is int:
            yield field
        elif isinstance(field, (tuple, Struct)):
            yield from _numbers(field)
