"""What a loop changes in each round, where some processes leave it in an earlier one.

LLVM's uniformity analysis calls it temporal divergence: the condition of a ``break`` that varies makes everything vary
that the loop stored, for whoever reads it behind the loop.
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
    """Why what operations at some places store is of another round on some processes, for a use in block ``use``.

    None for the use stands for behind the function. ``name`` is what they store to, in words.
    """
    text = f"in which round {name} was stored depends on this"
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
    """Does a store bind what a loop gets from its iterable, or a part of it: another value in each round."""
    operation = frame.code.operations[store]
    while isinstance(operation, (s.Store, s.Item)):
        operation = frame.code.operations[operation.value]
    return isinstance(operation, s.Next)


def exits(flow: Flow, header: int) -> Iterator[tuple[int, int]]:
    """The blocks of a loop, with their conditions, that lead out of it in one arm and go on with it in the other."""
    for number in sorted(flow.loop_body(header)):
        test = flow.function.blocks[number].test
        if test is None or isinstance(flow.function.operations[test], (s.Next, s.Matches, s.Caught)):
            continue
        if flow.leaves(number, header) and not _fails(flow, number, header):
            yield number, test


def _fails(flow: Flow, block: int, header: int) -> bool:
    """Does the arm that leaves a loop only come to an exception: nobody sees then what the loop has stored."""
    arms = [edge.target for edge in flow.function.blocks[block].edges if edge.kind in ("true", "false")]
    body = flow.loop_body(header)
    return all(EXIT not in flow.reachable(arm) for arm in arms if arm not in body and arm != header)
