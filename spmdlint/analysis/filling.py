"""Lists and dictionaries that a loop fills: their order is the order of what the loop goes over."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.origins import Origins, Reason
from spmdlint.analysis.values import Frame
from spmdlint.program import summary as s

_FILLERS = frozenset(("append", "extend", "insert", "setdefault", "update"))


def order_of_filling(origins: Origins, frame: Frame, load: int, text: str) -> Reason | None:
    """Why the elements of a name's value have the property, because of the loop that put them there."""
    function = origins.ev.function(frame)
    operation = function.operations[load]
    assert isinstance(operation, s.Load)
    if not function.binds(operation.name) or sorted_in_place(function, operation.name):
        return None
    for filled, iterable in _fillings(origins.ev, frame, operation.name):
        found = origins.of(frame, iterable)
        if found is not None:
            found = origins.step(frame, iterable, "this loop goes over it", found)
            return origins.step(frame, filled, text.format(name=repr(operation.name)), found)
    return None


def _fillings(evaluator: Evaluator, frame: Frame, name: str) -> Iterator[tuple[int, int]]:
    """Operations that put an element into a name's value, each with what the loops around it go over."""
    function = evaluator.function(frame)
    filling = [number for number, o in enumerate(function.operations) if _fills(function, o, name)]
    if not filling:
        return
    for header, block in enumerate(function.blocks):
        test = function.operations[block.test] if block.test is not None else None
        if isinstance(test, s.Next):
            body = evaluator.flow(frame.ref).loop_body(header)
            for number in filling:
                if function.block_of[number] in body:
                    yield number, test.iterable


def _fills(function: s.Function, operation: s.Operation, name: str) -> bool:
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


def sorted_in_place(function: s.Function, name: str) -> bool:
    """Does the function call ``name.sort()`` anywhere."""
    return any(
        isinstance(operation, s.Attribute)
        and operation.name == "sort"
        and isinstance(base := function.operations[operation.base], s.Load)
        and base.name == name
        for operation in function.operations
    )
