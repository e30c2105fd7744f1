"""Which operands of ``a if c else b``, ``a and b`` and ``a or b`` the value may be, as far as the choice is decided."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, truth
from spmdlint.program import summary as s


def taken(ev: Evaluator, frame: Frame, operation: s.IfExp | s.BoolOp) -> tuple[int, ...]:
    """The operands that may be the value; an operand that is known to be only tested is left out."""
    if isinstance(operation, s.IfExp):
        answer = truth(ev.value(frame, operation.test))
        if answer is None:
            return operation.body, operation.orelse
        return (operation.body if answer else operation.orelse,)
    left, right = operation.operands
    answer = truth(ev.value(frame, left))
    if answer is None:
        return left, right
    return (right,) if answer == (operation.operator == "and") else (left,)
