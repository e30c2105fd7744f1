"""The slice by which something is cut: written in the subscript, or made by `slice` and kept under a name."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, certain
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

_SLICE = "builtins.slice"


def cut_by(ev: Evaluator, frame: Frame, index: int) -> s.Slice | None:
    """The slice that an index is: ``x[a:b:c]``, or ``x[mine]`` with ``mine = slice(a, b, c)``; None if it is none."""
    operation = frame.code.operations[index]
    if isinstance(operation, s.Slice):
        return operation
    call = frame.code.operations[resolved(ev, frame, index)] if isinstance(operation, (s.Load, s.Call)) else None
    if not isinstance(call, s.Call) or any(argument.keyword or argument.star for argument in call.arguments):
        return None
    callee = certain(ev.value(frame, call.function))
    if not isinstance(callee, External) or callee.name != _SLICE or not 1 <= len(call.arguments) <= 3:
        return None
    ends = [_end(frame, argument.value) for argument in call.arguments]
    if len(ends) == 1:
        return s.Slice(None, ends[0], None)
    return s.Slice(ends[0], ends[1], ends[2] if len(ends) == 3 else None)


def _end(frame: Frame, number: int) -> int | None:
    """An argument of `slice`, in which None stands for an end that is left out."""
    operation = frame.code.operations[number]
    return None if isinstance(operation, s.Const) and operation.value is None else number
