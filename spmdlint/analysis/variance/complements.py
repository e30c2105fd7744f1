"""Parts that compensate for one another: as many rows as a process has, and as many as it lacks."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.origins import Origins
from spmdlint.program import summary as s

JOINED = frozenset(("append", "concatenate", "hstack", "vstack"))
"""Functions that concatenate arrays."""


def are_complements(origins: Origins, frame: Frame, number: int) -> bool:
    """Whether several of the joined arrays vary because of one source: their total may be the same everywhere."""
    parts = frame.code.operations[frame.code.root_of(number)]
    if not isinstance(parts, s.Display):
        return False
    sources = [found.source.site for each in parts.elements if (found := origins.of(frame, each)) is not None]
    return len(set(sources)) < len(sources)
