"""The library function that is the source of variance."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, certain
from spmdlint.analysis.variance.reason import Reason
from spmdlint.program import summary as s


def source_function(ev: Evaluator, reason: Reason) -> str:
    """The name of the library function whose call is the source of a reason; empty if the source is something else."""
    site = reason.source.site
    call = ev.project.function(site.ref).operations[site.number]
    callee = certain(ev.value(ev.free_frame(site.ref), call.function)) if isinstance(call, s.Call) else None
    return callee.name if isinstance(callee, External) else ""
