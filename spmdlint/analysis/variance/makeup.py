"""Parts that make up for one another: as many rows as a process has, and as many as it lacks."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.origins import Origins
from spmdlint.program import summary as s

JOINED = frozenset(("append", "concatenate", "hstack", "vstack"))
"""What puts arrays one behind the other."""


def make_up(origins: Origins, frame: Frame, number: int) -> bool:
    """Do several of the arrays that are put together vary for one cause: their sum may be the same everywhere."""
    parts = frame.code.operations[frame.code.root_of(number)]
    if not isinstance(parts, s.Display):
        return False
    sources = [found.source.site for each in parts.elements if (found := origins.of(frame, each)) is not None]
    return len(set(sources)) < len(sources)
