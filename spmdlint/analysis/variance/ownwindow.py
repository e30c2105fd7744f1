"""A process's own window of the last batch of data that all processes batch alike: ``batch[rank * n:(rank + 1) * n]``.

The last batch is short, in the same way everywhere. The windows at fixed places in it are not: the first ones are full,
and the last ones short or empty.
"""

from __future__ import annotations

from collections.abc import Callable

from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import Windows, resolved
from spmdlint.program import summary as s

_PARTS = frozenset(("items", "values"))
_PASSED_ON = frozenset(("builtins.iter", "builtins.next"))


def of_short_batch(
    content: Origins, frame: Frame, operation: s.Subscript, index: s.Slice, is_batched: Callable[[Frame, int], bool]
) -> Reason | None:
    """Why a slice is this process's own window of a batch that may be short.

    ``content`` says which values differ; ``is_batched``: whether an iterable gives batches of which the last is short.
    """
    if index.lower is None or index.upper is None or index.step is not None:
        return None
    place = content.of(frame, index.lower)
    if place is None or place.kind != "identity" or not Windows(content).follows(frame, index.lower, index.upper):
        return None
    return place if _is_short(content, frame, operation.base, is_batched) else None


def _is_short(content: Origins, frame: Frame, base: int, is_batched: Callable[[Frame, int], bool]) -> bool:
    ev = content.ev
    number = resolved(ev, frame, base)
    operation = frame.code.operations[number]
    if isinstance(operation, s.Item):
        return _is_short(content, frame, operation.value, is_batched)
    if isinstance(operation, s.Next):
        return is_batched(frame, operation.iterable) or _is_short(content, frame, operation.iterable, is_batched)
    if isinstance(operation, s.Subscript):
        cut = frame.code.operations[operation.index]
        if isinstance(cut, s.Slice):
            return _goes_to_the_end(content, frame, operation, cut)
        return _is_short(content, frame, operation.base, is_batched)
    if not isinstance(operation, s.Call):
        return False
    method = frame.code.operations[operation.function]
    if isinstance(method, s.Attribute) and method.name in _PARTS:
        return _is_short(content, frame, method.base, is_batched)
    callee = ev.callee(frame, operation)
    if isinstance(callee, External) and callee.name in _PASSED_ON and len(operation.arguments) == 1:
        given = operation.arguments[0].value
        return is_batched(frame, given) or _is_short(content, frame, given, is_batched)
    return False


def _goes_to_the_end(content: Origins, frame: Frame, operation: s.Subscript, cut: s.Slice) -> bool:
    """Whether it is ``data[i:i + n]`` with ``i in range(0, len(data), n)``, for data that does not differ."""
    if cut.lower is None or cut.upper is None or not Windows(content).follows(frame, cut.lower, cut.upper):
        return False
    start = frame.code.operations[resolved(content.ev, frame, cut.lower)]
    steps = frame.code.operations[frame.code.root_of(start.iterable)] if isinstance(start, s.Next) else None
    if content.ev.callee(frame, steps) != External("builtins.range"):
        return False
    if not isinstance(steps, s.Call) or len(steps.arguments) != 3:
        return False
    end = frame.code.operations[resolved(content.ev, frame, steps.arguments[1].value)]
    if not isinstance(end, s.Call) or content.ev.callee(frame, end) != External("builtins.len"):
        return False
    counted = [argument.value for argument in end.arguments]
    same = len(counted) == 1 and Windows(content).conditions.same(frame, counted[0], operation.base)
    return same and content.of(frame, operation.base) is None
