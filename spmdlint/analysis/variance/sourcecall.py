"""The library function or attribute that is the source of variance."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, certain
from spmdlint.analysis.variance.reason import Reason
from spmdlint.program import summary as s


def source_function(ev: Evaluator, reason: Reason) -> str:
    """The name of the library's function, called, or attribute that is the source of a reason; otherwise empty."""
    site = reason.source.site
    read = ev.project.function(site.ref).operations[site.number]
    known = certain(ev.value(ev.free_frame(site.ref), read.function if isinstance(read, s.Call) else site.number))
    return known.name if isinstance(known, External) else ""
