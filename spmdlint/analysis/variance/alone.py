"""What only runs in a job of one process, where nothing differs: ``if jax.process_count() == 1: return x``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.program import summary as s

_COUNTS = frozenset(("process_count", "host_count", "device_count"))


class Alone:
    """Tells such operations. One per walk."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.conditions = Conditions(evaluator)
        self._asks: dict[Code, bool] = {}
        self._known: dict[tuple[Code, int], bool] = {}

    def at(self, frame: Frame, number: int) -> bool:
        """Does an operation only run in a job of one process. Only the function's own tests are looked at."""
        if not self._counts(frame.code):
            return False
        key = (frame.code, frame.code.function.block_of[number])
        if key not in self._known:
            self._known[key] = self.conditions.alone(frame, key[1])
        return self._known[key]

    def _counts(self, code: Code) -> bool:
        """Does a function ask how many processes there are."""
        if code not in self._asks:
            named = any(attribute.name in _COUNTS for _, attribute in code.of_kind(s.Attribute))
            self._asks[code] = named or any(load.name in _COUNTS for _, load in code.of_kind(s.Load))
        return self._asks[code]
