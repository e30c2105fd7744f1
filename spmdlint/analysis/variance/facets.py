"""Variance by facet: which value, whether there is one, which function, how many elements, and which shape."""

from __future__ import annotations

from collections.abc import Callable

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.choice import Choice
from spmdlint.analysis.variance.content import Variance
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.emptiness import Emptiness
from spmdlint.analysis.variance.handed import Handed
from spmdlint.analysis.variance.inside import Inside
from spmdlint.analysis.variance.lastbatch import LastBatch
from spmdlint.analysis.variance.length import Length
from spmdlint.analysis.variance.madeof import Made
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.presence import Presence
from spmdlint.analysis.variance.ragged import Lengths
from spmdlint.analysis.variance.raised import Raised
from spmdlint.analysis.variance.shape import Shape
from spmdlint.analysis.variance.sharing import Sharing
from spmdlint.analysis.variance.sources import Counters, OwnDevice, Sources
from spmdlint.analysis.variance.structure import Structure
from spmdlint.analysis.variance.walk import Walk


class Facets:
    """The walks for all facets, which use one another. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach, spans: Callable[[Frame, int], bool]) -> None:
        control = Control(evaluator)
        walk = Walk()
        sources, handed, raised = Sources(evaluator, reach), Handed(evaluator), Raised(evaluator)
        content = Variance(evaluator.knowledge, sources, control, handed, raised, spans)
        presence, choice = Presence(control, handed), Choice(control)
        self._length = Length(evaluator.knowledge, control)
        self.content = Origins(evaluator, calls, reach, content, walk)
        sources.content = self.content
        self.sharing = Sharing(self.content, sources)
        self.presence = Origins(evaluator, calls, reach, presence, walk)
        self.choice = Origins(evaluator, calls, reach, choice, walk)
        self.length = Origins(evaluator, calls, reach, self._length, walk)
        content.counters = Counters(evaluator, reach, control)
        content.own_device = Origins(evaluator, calls, reach, OwnDevice(), walk)
        lengths = Lengths()
        lengths.content = self.content
        content.lengths = Origins(evaluator, calls, reach, lengths, walk)
        shape = Shape(control)
        self.shape = Origins(evaluator, calls, reach, shape, walk)
        shape.content, shape.length = self.content, self.length
        structure = Structure(control)
        structure.content = self.content
        self.structure = Origins(evaluator, calls, reach, structure, walk)
        emptiness = Emptiness()
        emptiness.content = self.content
        self.emptiness = Origins(evaluator, calls, reach, emptiness, walk)
        self._length.grown.emptiness = structure.grown.emptiness = self.emptiness
        self.last_batch = Origins(evaluator, calls, reach, LastBatch(self.length, self.content, self._length), walk)
        inside = Inside()
        inside.length = self.length
        self._length.inside = Origins(evaluator, calls, reach, inside, walk)
        self._length.made = Origins(evaluator, calls, reach, Made(), walk)
        content.length = presence.length = self.length
        content.caught.goes_over = self.of_loop
        content.presence = self.presence
        presence.content = choice.content = self._length.content = self.content

    def varies(self, frame: Frame, number: int) -> bool:
        """Whether a value, or how many elements it has, differs between processes for a known reason."""
        return self.content.of(frame, number) is not None or self.length.of(frame, number) is not None

    def of_loop(self, frame: Frame, iterable: int) -> Reason | None:
        """Why a loop over a value makes a different number of iterations on each process."""
        return self._length.iterated.of(self.length, frame, iterable)
