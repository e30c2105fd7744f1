"""What is stored on some processes only, or at another time on each: where a branch that varies decides on it."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program.link import FunctionRef


def guarded(origins: Origins, control: Control, frame: Frame, number: int) -> Reason | None:
    """The reason of the branch that decides whether an operation of a frame runs."""
    for branch in control.choosing(frame, (number,), None):
        found = origins.of(frame, branch.test)
        if found is not None:
            site = Site(frame.ref, branch.test)
            return Reason(site, "whether it is stored depends on this", found.kind, found)
    return None


def called_by_some(origins: Origins, control: Control, ref: FunctionRef) -> Reason | None:
    """Why a method is only ever called on some processes: a branch on who one is lies around each of its calls.

    Objects that only these processes make are none that the others have another value of.
    """
    edges = origins.reach.callers.get(ref, ())
    if not edges or origins.ev.project.function(ref).name == "__init__":
        return None
    first: Reason | None = None
    for edge in edges:
        guard = guarded(origins, control, edge.caller, edge.site.number) if edge.target.way == "call" else None
        if guard is None or guard.kind != "identity":
            return None
        if first is None:
            first = Reason(edge.site, "only some processes make this call", guard.kind, guard)
    return first
