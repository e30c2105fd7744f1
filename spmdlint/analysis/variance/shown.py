"""Progress bars: ``tqdm(steps) if leads else steps`` gives every process the same steps."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.transfers import through
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

# Names that projects give to progress bars. A library's call with the elements of its argument counts as well.
_BARS = frozenset(("tqdm", "track", "progress_bar", "tqdm_notebook"))


def same_behind_bars(conditions: Conditions, frame: Frame, values: Sequence[int]) -> bool:
    """Whether these values are the same iterable, some of them wrapped in a progress bar."""
    behind = [_behind(conditions.ev, frame, value) for value in values]
    if behind == list(values) or len(behind) < 2:
        return False
    return all(_same(conditions, frame, behind[0], other) for other in behind[1:])


def _behind(ev: Evaluator, frame: Frame, number: int) -> int:
    call = frame.code.operations[number]
    if not isinstance(call, s.Call) or not call.arguments or call.arguments[0].star:
        return number
    callee = frame.code.operations[call.function]
    if isinstance(callee, (s.Load, s.Attribute)) and callee.name in _BARS:
        return call.arguments[0].value
    made = ev.callee(frame, call)
    given = through(ev.knowledge, made.name, call, "order") if isinstance(made, External) else ()
    return given[0] if len(given) == 1 else number


def _same(conditions: Conditions, frame: Frame, one: int, other: int) -> bool:
    """Whether two values are equal, including ``range`` and the like called twice with equal arguments."""
    if conditions.same(frame, one, other):
        return True
    ev = conditions.ev
    first, second = (frame.code.operations[resolved(ev, frame, number)] for number in (one, other))
    if not isinstance(first, s.Call) or not isinstance(second, s.Call):
        return False
    names = {v.name for v in ev.value(frame, first.function) if isinstance(v, External)}
    if not names or ev.value(frame, first.function) != ev.value(frame, second.function):
        return False
    if [a.keyword for a in first.arguments] != [a.keyword for a in second.arguments]:
        return False
    pairs = zip(first.arguments, second.arguments, strict=True)
    return all(_same(conditions, frame, a.value, b.value) for a, b in pairs)
