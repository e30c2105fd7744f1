"""Variance in its facets: what it is, whether there is one, how many elements it has, and its shape."""

from __future__ import annotations

from spmdlint.analysis.calls import Calls
from spmdlint.analysis.control import Control
from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.handed import Handed
from spmdlint.analysis.length import Length
from spmdlint.analysis.origins import Calling, Origins, Reason
from spmdlint.analysis.presence import Presence
from spmdlint.analysis.reach import Reach
from spmdlint.analysis.shape import Shape
from spmdlint.analysis.sources import Sources
from spmdlint.analysis.values import Frame
from spmdlint.analysis.variance import Variance


class Facets:
    """The walks for each facet, which ask one another. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach) -> None:
        control = Control(evaluator)
        calling = Calling()
        content = Variance(evaluator.knowledge, Sources(evaluator, reach), control, Handed(evaluator))
        presence = Presence(control)
        self._length = Length(evaluator.knowledge)
        self.content = Origins(evaluator, calls, reach, content, calling)
        self.presence = Origins(evaluator, calls, reach, presence, calling)
        self.length = Origins(evaluator, calls, reach, self._length, calling)
        shape = Shape()
        self.shape = Origins(evaluator, calls, reach, shape, calling)
        shape.content, shape.length = self.content, self.length
        content.length = presence.length = self.length
        content.presence = self.presence
        presence.content = self._length.content = self.content

    def of_loop(self, frame: Frame, iterable: int) -> Reason | None:
        """Why a loop over a value makes another number of steps on every process."""
        return self._length.of_iteration(self.length, frame, iterable)
