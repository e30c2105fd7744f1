"""What is stored on some processes only, or at another time on each: where a branch that varies decides on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.program.link import FunctionRef


def decided(
    content: Origins,
    control: Control,
    frame: Frame,
    places: Iterable[int],
    use: int | None,
    text: str,
    counts: Callable[[Reason], bool] = lambda _: True,
) -> Reason | None:
    """Why a branch that varies, for a reason that ``counts``, chooses between operations for one that runs later.

    ``use`` is the block of that one, None for after the function; ``text`` says what depends on the branch.
    """
    for branch in control.choosing(frame, places, use):
        found = of_truth(content, frame, branch.test)
        if found is not None and counts(found):
            return Reason(Site(frame.ref, branch.test), text, found.kind, found)
    return None


def guarded(origins: Origins, control: Control, frame: Frame, number: int) -> Reason | None:
    """The reason of the branch that decides whether an operation of a frame runs."""
    return decided(origins, control, frame, (number,), None, "whether it is stored depends on this")


def tells_who(reason: Reason) -> bool:
    """Does what varies tell one process, or a group of them, from the others."""
    return reason.kind in ("identity", "group")


def tells_when(reason: Reason) -> bool:
    """Does what varies depend on the moment at which a process asks, or on chance: as good as never alike."""
    return reason.kind in ("completion", "clock", "signal", "entropy")


def called_by_some(origins: Origins, control: Control, ref: FunctionRef) -> Reason | None:
    """Why a method is only ever called on some processes: a branch on who one is lies around each of its calls.

    Objects that only these processes make are none that the others have another value of.
    """
    edges = origins.reach.callers.get(ref, ())
    if not edges or origins.ev.project.function(ref).name == "__init__":
        return None
    first: Reason | None = None
    for edge in edges:
        guard = guarded(origins, control, edge.caller, edge.number) if edge.target.way == "call" else None
        if guard is None or guard.kind != "identity":
            return None
        if first is None:
            first = Reason(edge.site, "only some processes make this call", guard.kind, guard)
    return first
