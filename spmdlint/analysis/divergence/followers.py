"""Processes that follow a leader: in a loop they wait for its message, act on it, and leave when it says so.

What the leader sends, and how often, depends on what it does meanwhile: neither repeats the other's code.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.agreed import parts
from spmdlint.program import summary as s

_DEPTH = 6


def one_follows(
    ev: Evaluator, effects: Effects, frame: Frame, one: Sequence[ParallelCall], other: Sequence[ParallelCall]
) -> bool:
    """Whether one of two arms follows the other: it waits in a loop for a call that the other arm makes as well."""
    return any(
        _is_word(ev, effects, frame, call) and any(call.matches(answer) for answer in theirs)
        for ours, theirs in ((one, other), (other, one))
        for call in ours
    )


def _is_word(ev: Evaluator, effects: Effects, frame: Frame, call: ParallelCall) -> bool:
    """Whether a call makes processes agree, and its result decides whether a loop around it goes on or ends.

    The loop may be in the arm, or in any function on the way to the call.
    """
    made = call.path[-1]
    inside = ev.free_frame(made.ref) if made.ref != frame.ref else frame
    operation = inside.code.operations[made.number]
    if not isinstance(operation, s.Call) or not effects.agrees(inside, operation):
        return False
    return any(
        _decides_a_loop(ev, frame if site.ref == frame.ref else ev.free_frame(site.ref), site.number)
        for site in call.path
    )


def _decides_a_loop(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether an operation is in a loop that ends or goes on depending on its result."""
    function, flow = frame.code.function, ev.flow(frame.ref)
    for header in flow.loops:
        body = flow.loop_body(header)
        for block in body if function.block_of[number] in body else ():
            test = function.blocks[block].test
            if test is not None and flow.leaves(block, header) and number in parts(ev, frame, test, _DEPTH):
                return True
    return False
