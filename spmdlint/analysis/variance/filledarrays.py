"""Arrays of the host that only some processes fill: a branch on the process, or on its own queue, guards the store."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Applied, Frame, Site, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.guarded import guarded
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_MADE = tuple(f"numpy.{name}" for name in "zeros ones full empty zeros_like ones_like full_like".split())
_KINDS = ("identity", "completion")


def of_filled(content: Origins, control: Control, frame: Frame, load: s.Load, number: int) -> Reason | None:
    """Why a NumPy array with a name holds something else on each process."""
    made = certain(content.ev.value(frame, number)) if frame.code.function.binds(load.name) else None
    if not isinstance(made, Applied) or made.name not in _MADE:
        return None
    for place, put in frame.code.of_kind(s.StoreSubscript):
        base = frame.code.operations[put.base]
        if isinstance(base, s.Load) and base.name == load.name and place < number:
            found = guarded(content, control, frame, place)
            if found is not None and found.kind in _KINDS:
                return Reason(Site(frame.ref, place), f"only some processes fill {load.name!r} here", found.kind, found)
    return None
