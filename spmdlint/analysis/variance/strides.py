"""Strided shares in a loop over all elements: ``if i % n == rank`` takes one element after another for this process.

Some processes then have one element more than others, unless the division leaves no remainder: as with the stride
``x[rank::n]``.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s


class StridedElements:
    """Recognises operations in a loop that run only for one process's elements. One per run."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def stride(self, content: Origins, frame: Frame, places: Iterable[int]) -> tuple[Reason, int, int] | None:
        """The process index that decides whether the operations run, the condition, and what the loop iterates over."""
        flow = content.ev.flow(frame.ref)
        for branch in self.control.choosing(frame, places, None):
            around = flow.loops_around(branch.block)
            if not around:
                continue
            found = stride_of(content, frame, branch.test)
            each = self._goes_over(content, frame, around[0])
            if found is not None and each is not None:
                return found[0], branch.test, each
        return None

    def _goes_over(self, content: Origins, frame: Frame, header: int) -> int | None:
        """The iterable of a loop, without a call of ``enumerate`` around it."""
        function = content.ev.function(frame)
        test = function.blocks[header].test
        step = function.operations[test] if test is not None else None
        if not isinstance(step, s.Next):
            return None
        call = function.operations[resolved(content.ev, frame, step.iterable)]
        if isinstance(call, s.Call) and call.arguments and content.ev.may_do(frame, call, "enumerate"):
            return call.arguments[0].value
        return step.iterable


def stride_of(content: Origins, frame: Frame, test: int) -> tuple[Reason, int] | None:
    """The process index in ``i % n == rank``, or in its negation, and ``i``: the condition deals elements out."""
    operations = content.ev.function(frame).operations
    operation = operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return stride_of(content, frame, operation.operand)
    if not isinstance(operation, s.Compare) or operation.operators not in (("==",), ("!=",)):
        return None
    for one, other in (operation.operands, operation.operands[::-1]):
        rest = operations[resolved(content.ev, frame, one)]
        if isinstance(rest, s.Binary) and rest.operator == "%":
            found = content.why(frame, other)
            if found is not None and found.kind == "identity" and content.why(frame, rest.right) is None:
                return found, rest.left
    return None
