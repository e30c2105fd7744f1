"""Arrays that a branch says have parts on other processes: ``if not x.is_fully_addressable``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.program import summary as s

_ALL_HERE = "is_fully_addressable"


def said_to_span(evaluator: Evaluator, control: Control, frame: Frame, number: int) -> Site | None:
    """The condition under which alone code runs, if it says that a value there spans processes."""
    operations = frame.code.operations
    array = operations[number]
    if not isinstance(array, s.Load):
        return None
    block = frame.code.function.block_of[number]
    for branch in control.branches(frame.ref):
        way = True if block in branch.yes else False if block in branch.no else None
        asked = _asked(operations, branch.test, way) if way is not None else None
        base = operations[asked] if asked is not None else None
        if asked is not None and isinstance(base, s.Load) and base.name == array.name:
            stores = evaluator.reaching(frame, number, array.name)
            if stores == evaluator.reaching(frame, asked, array.name):
                return Site(frame.ref, branch.test)
    return None


def _asked(operations: list[s.Operation], test: int, way: bool) -> int | None:
    """The array that is not fully addressable if a condition has the given outcome; None if there is none."""
    operation = operations[test]
    if isinstance(operation, s.Attribute):
        return operation.base if operation.name == _ALL_HERE and not way else None
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return _asked(operations, operation.operand, not way)
    if isinstance(operation, s.BoolOp) and (operation.operator == "and") == way:
        found = (_asked(operations, operand, way) for operand in operation.operands)
        return next((each for each in found if each is not None), None)
    return None
