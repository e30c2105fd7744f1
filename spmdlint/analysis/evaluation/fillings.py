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
    filling = [number for number, o in enumerate(function.operations) if fills(function, o, name)]
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
    if isinstance(operation, s.StoreSubscript):
        base: s.Operation | None = function.operations[operation.base]
    elif isinstance(operation, s.Call):
        method = function.operations[operation.function]
        fills = isinstance(method, s.Attribute) and method.name in _FILLERS
        base = function.operations[method.base] if isinstance(method, s.Attribute) and fills else None
    elif isinstance(operation, s.Binary) and operation.inplace and operation.operator == "+":
        base = function.operations[operation.left]
        right = function.operations[operation.right]
        return isinstance(base, s.Load) and base.name == name and isinstance(right, s.Display)
    else:
        return False
    return isinstance(base, s.Load) and base.name == name
