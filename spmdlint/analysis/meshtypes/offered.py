"""Functions that leave it to their caller whether a denominator is summed over all devices."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Site

_REDUCTIONS = frozenset(("jax.lax.psum", "jax.lax.pmean"))


def reduces_on_another_arm(ev: Evaluator, site: Site) -> bool:
    """Whether there is a reduction on a path that bypasses this site: the author then knows about the difference."""
    frame = ev.free_frame(site.ref)
    function, flow = ev.function(frame), ev.flow(site.ref)
    here = function.block_of[site.number]
    for number, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
        callees = ev.value(frame, call.function)
        if any(isinstance(callee, External) and callee.name in _REDUCTIONS for callee in callees):
            there = function.block_of[number]
            if there not in flow.reachable(here) and here not in flow.reachable(there):
                return True
    return False
