"""What is stored on some processes only, or at another time on each: where a branch that varies decides on it."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, Reason


def guarded(origins: Origins, control: Control, frame: Frame, number: int) -> Reason | None:
    """The reason of the branch that decides whether an operation of a frame runs."""
    for branch in control.choosing(frame, (number,), None):
        found = origins.of(frame, branch.test)
        if found is not None:
            site = Site(frame.ref, branch.test)
            return Reason(site, "whether it is stored depends on this", found.kind, found)
    return None
