"""Operations that run only in single-process jobs, where nothing differs: ``if jax.process_count() == 1: return x``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.conditions import COUNT_NAMES, Conditions

_COUNTS = COUNT_NAMES | {"device_count"}


class Alone:
    """Recognises such operations. One per walk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.conditions = Conditions(evaluator)
        self._known: dict[tuple[Code, int], bool] = {}

    def at(self, frame: Frame, number: int) -> bool:
        """Whether an operation runs only in a single-process job. Only tests in the same function are considered."""
        if not frame.code.mentions(_COUNTS):
            return False  # few functions mention one, and this check is the cheapest
        key = (frame.code, frame.code.function.block_of[number])
        if key not in self._known:
            self._known[key] = self.conditions.alone(frame, key[1])
        return self._known[key]
