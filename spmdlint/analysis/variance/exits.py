"""Values that a loop changes in each iteration, where some processes leave the loop earlier than others.

LLVM's uniformity analysis calls this temporal divergence: if the condition of a ``break`` varies, everything that the
loop stored varies for readers after the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.program import summary as s
from spmdlint.program.summary import EXIT


def left_early(content: Origins, frame: Frame, places: Sequence[int], use: int | None, name: str) -> Reason | None:
    """Why stores at these places are from a different iteration on some processes, for a use in block ``use``.

    A use of None is after the function. ``name`` describes in words what they store to.
    """
    text = f"in which iteration {name} was stored depends on this"
    function = frame.code.function
    blocks = {function.block_of[place] for place in places}
    for header, body in frame.code.flow.loops.items():
        if use in body or body.isdisjoint(blocks):
            continue
        for block, test in exits(frame.code.flow, header):
            found = of_truth(content, frame, test) if block in content.ev.live_blocks(frame) else None
            if found is not None:
                return Reason(Site(frame.ref, test), text, found.kind, found)
    return None


def of_loop(frame: Frame, store: int) -> bool:
    """Whether a store binds the element of a loop, or a part of it: a different value in each iteration."""
    operation = frame.code.operations[store]
    while isinstance(operation, (s.Store, s.Item)):
        operation = frame.code.operations[operation.value]
    return isinstance(operation, s.Next)


def exits(flow: Flow, header: int) -> Iterator[tuple[int, int]]:
    """The blocks of a loop that leave it in one arm and stay in it in the other, with their conditions."""
    for number in sorted(flow.loop_body(header)):
        test = flow.function.blocks[number].test
        if test is None or isinstance(flow.function.operations[test], (s.Next, s.Matches, s.Caught)):
            continue
        if flow.leaves(number, header) and not _fails(flow, number, header):
            yield number, test


def _fails(flow: Flow, block: int, header: int) -> bool:
    """Whether the arm that leaves a loop only reaches an exception, so that nobody sees what the loop has stored."""
    arms = [edge.target for edge in flow.function.blocks[block].edges if edge.kind in ("true", "false")]
    body = flow.loop_body(header)
    return all(EXIT not in flow.reachable(arm) for arm in arms if arm not in body and arm != header)
