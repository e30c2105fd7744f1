"""Where a loop puts elements into a list or dictionary that has a name."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.program import summary as s

_FILLERS = frozenset(("append", "extend", "insert", "setdefault", "update"))


def fillings(evaluator: Evaluator, frame: Frame, name: str) -> Iterator[tuple[int, int]]:
    """Operations that put an element into a name's value, each with what the loops around it go over."""
    function = evaluator.function(frame)
    yield from _in_loops(
        evaluator, frame, [number for number, o in enumerate(function.operations) if fills(function, o, name)]
    )


def fillings_of_field(evaluator: Evaluator, frame: Frame, name: str) -> Iterator[tuple[int, int]]:
    """The same for an attribute of the receiver of a method."""
    function = evaluator.function(frame)
    receiver = function.formals[0].name if function.formals else None

    def is_field(number: int) -> bool:
        operation = function.operations[number]
        if not isinstance(operation, s.Attribute) or operation.name != name:
            return False
        base = function.operations[operation.base]
        return isinstance(base, s.Load) and base.name == receiver

    filling = [n for n, o in enumerate(function.operations) if (base := _filled(function, o)) and is_field(base)]
    yield from _in_loops(evaluator, frame, filling)


def _in_loops(evaluator: Evaluator, frame: Frame, filling: list[int]) -> Iterator[tuple[int, int]]:
    function = evaluator.function(frame)
    if not filling:
        return
    for header, block in enumerate(function.blocks):
        test = function.operations[block.test] if block.test is not None else None
        if isinstance(test, s.Next):
            body = evaluator.flow(frame.ref).loop_body(header)
            for number in filling:
                if function.block_of[number] in body:
                    yield number, test.iterable


def fills(function: s.Function, operation: s.Operation, name: str) -> bool:
    """Does an operation put something into the value of a name."""
    filled = _filled(function, operation)
    base = function.operations[filled] if filled is not None else None
    return isinstance(base, s.Load) and base.name == name


def _filled(function: s.Function, operation: s.Operation) -> int | None:
    """What an operation puts something into."""
    if isinstance(operation, s.StoreSubscript):
        return operation.base
    if isinstance(operation, s.Call):
        method = function.operations[operation.function]
        return method.base if isinstance(method, s.Attribute) and method.name in _FILLERS else None
    if isinstance(operation, s.Binary) and operation.inplace and operation.operator == "+":
        right = function.operations[operation.right]
        return operation.left if isinstance(right, (s.Display, s.Collected)) else None
    return None
