"""Processes that serve another one: in a loop they wait for its word, do what it says, and leave when it says so.

What the other one sends, and how often, stands somewhere in what it does meanwhile: neither copies the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.agreed import parts
from spmdlint.program import summary as s

_DEPTH = 6


def one_serves(
    ev: Evaluator, effects: Effects, frame: Frame, one: Sequence[ParallelCall], other: Sequence[ParallelCall]
) -> bool:
    """Does one of two arms serve the other, which makes such a call as well."""
    return any(
        _is_word(ev, effects, frame, call) and any(call.matches(answer) for answer in theirs)
        for ours, theirs in ((one, other), (other, one))
        for call in ours
    )


def _is_word(ev: Evaluator, effects: Effects, frame: Frame, call: ParallelCall) -> bool:
    """Does a loop around a call, by which processes agree, go on or end as what it gives says."""
    number = call.site.number
    operation = frame.code.operations[number]
    if call.site.ref != frame.ref or not isinstance(operation, s.Call) or not effects.agrees(frame, operation):
        return False
    function, flow = frame.code.function, ev.flow(frame.ref)
    for header in flow.loops:
        body = flow.loop_body(header)
        for block in body if function.block_of[number] in body else ():
            test = function.blocks[block].test
            if test is not None and flow.leaves(block, header) and number in parts(ev, frame, test, _DEPTH):
                return True
    return False
