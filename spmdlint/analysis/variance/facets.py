"""Variance by facet: which value, whether there is one, which function, how many elements, and which shape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

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
from spmdlint.analysis.variance.origins import Origins, Property, Reason
from spmdlint.analysis.variance.presence import Presence
from spmdlint.analysis.variance.ragged import Lengths
from spmdlint.analysis.variance.shape import Shape
from spmdlint.analysis.variance.sharing import Sharing
from spmdlint.analysis.variance.sources import OwnDevice, Sources
from spmdlint.analysis.variance.structure import Structure
from spmdlint.analysis.variance.walk import Walk


class Facets:
    """The walks for all facets, which use one another once all are made. One per run."""

    def __init__(
        self,
        evaluator: Evaluator,
        calls: Calls,
        reach: Reach,
        spans: Callable[[Frame, int], bool],
        programs: Mapping[Path, Collection[Path]],
    ) -> None:
        control, handed, walk = evaluator.once(Control), Handed(evaluator), Walk()
        sources = Sources(self, evaluator, reach)
        self._lengths = Length(self, evaluator.knowledge, control)

        def walked(what: Property) -> Origins:
            return Origins(evaluator, calls, reach, what, walk, programs)

        self.content = walked(Variance(self, sources, control, handed, spans))
        self.presence = walked(Presence(self, control, handed))
        self.choice = walked(Choice(self, control))
        self.length = walked(self._lengths)
        self.lengths = walked(Lengths(self))
        self.shape = walked(Shape(self, control))
        self.structure = walked(Structure(self, control))
        self.emptiness = walked(Emptiness(self))
        self.last_batch = walked(LastBatch(self, self._lengths))
        self.inside = walked(Inside(self))
        self.made = walked(Made())
        self.own_device = walked(OwnDevice())
        self.sharing = Sharing(self.content, sources)

    def varies(self, frame: Frame, number: int) -> bool:
        """Whether a value, or how many elements it has, differs between processes for a known reason."""
        return self.content.why(frame, number) is not None or self.length.why(frame, number) is not None

    def of_loop(self, frame: Frame, iterable: int) -> Reason | None:
        """Why a loop over a value makes a different number of iterations on each process."""
        return self._lengths.iterated.why(self.length, frame, iterable)
