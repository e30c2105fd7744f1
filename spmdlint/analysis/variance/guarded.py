"""Stores that are made on some processes only, or at a different time on each, because a varying branch guards them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Site, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.knowledge.load import Known
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
    """Why a varying branch chooses between operations for a later use, if ``counts`` accepts the reason.

    ``use`` is the block of that use, None for after the function; ``text`` says what depends on the branch.
    """
    for branch in control.choosing(frame, places, use):
        found = of_truth(content, frame, branch.test)
        if found is not None and counts(found):
            return Reason(Site(frame.ref, branch.test), text, found.kind, found, through="choice")
    return None


def guarded(origins: Origins, control: Control, frame: Frame, number: int) -> Reason | None:
    """The reason of the branch that decides whether an operation of a frame runs."""
    return decided(origins, control, frame, (number,), None, "whether it is stored depends on this")


def tells_who(reason: Reason) -> bool:
    """Whether the variance separates one process, or a group of processes, from the others."""
    return reason.kind in ("identity", "group")


def tells_when(reason: Reason) -> bool:
    """Whether the variance depends on the moment of asking, or on chance, so that processes almost never agree."""
    return reason.kind in ("completion", "clock", "signal", "entropy")


def called_by_some(origins: Origins, control: Control, ref: FunctionRef) -> Reason | None:
    """Why a method is called on some processes only: each of its calls is guarded by a branch on the process.

    If only those processes make the object, the other processes have no other value of it.
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
            first = guard.then(edge.site, "only some processes make this call")
    return first


def set_by_some(content: Origins, control: Control, frame: Frame, number: int) -> Reason | None:
    """Why what a library's function sets, such as the run of a tracker, is not there on every process."""
    known = set_by_another(content.ev, frame, number)
    if known is None or not known.attribute:
        return None
    return done_by_some(content, control, frame, known.set_by)


def set_by_another(ev: Evaluator, frame: Frame, number: int) -> Known | None:
    """What is known of something of a library that another of its functions sets, or that needs what it sets."""
    value = certain(ev.value(frame, number))
    known = ev.knowledge.get(value.name) if isinstance(value, External) else None
    return known if known is not None and known.set_by else None


def done_by_some(content: Origins, control: Control, frame: Frame, name: str) -> Reason | None:
    """Why the only call of a library's function is made on some processes. Of several, each process may make one."""
    component = content.ev.project.component
    sites = {use.site for use in content.reach.applications if use.applied.name == name}
    calls = [site for site in sites if component[site.ref.path] == component[frame.ref.path]]
    if len(calls) != 1:
        return None
    (site,) = calls
    text = f"whether {name}() is called depends on this"
    found = decided(content, control, content.frame_of(site.ref), (site.number,), None, text)
    if found is None and len(content.reach.callers.get(site.ref, ())) == 1:
        found = called_by_some(content, control, site.ref)
    return found if found is None or tells_who(found) else None
