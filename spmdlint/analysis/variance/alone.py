"""What only runs in a job of one process, where nothing differs: ``if jax.process_count() == 1: return x``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.conditions import COUNT_NAMES, Conditions

_COUNTS = COUNT_NAMES | {"device_count"}


class Alone:
    """Tells such operations. One per walk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.conditions = Conditions(evaluator)
        self._known: dict[tuple[Code, int], bool] = {}

    def at(self, frame: Frame, number: int) -> bool:
        """Does an operation only run in a job of one process. Only the function's own tests are looked at."""
        if not frame.code.mentions(_COUNTS):
            return False  # few do, and that is told soonest
        key = (frame.code, frame.code.function.block_of[number])
        if key not in self._known:
            self._known[key] = self.conditions.alone(frame, key[1])
        return self._known[key]
