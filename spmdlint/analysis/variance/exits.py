"""What a loop changes in each round, where some processes leave it in an earlier one.

LLVM's uniformity analysis calls it temporal divergence: the condition of a ``break`` that varies makes everything vary
that the loop stored, for whoever reads it behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.program import summary as s


def left_early(content: Origins, frame: Frame, places: Sequence[int], use: int | None, text: str) -> Reason | None:
    """Why what operations at some places store is of another round on some processes, for a use in block ``use``.

    None for the use stands for behind the function.
    """
    function = frame.code.function
    blocks = {function.block_of[place] for place in places}
    for body in frame.code.flow.loops.values():
        if use in body or body.isdisjoint(blocks):
            continue
        for block, test in exits(function, body):
            found = of_truth(content, frame, test) if block in content.ev.live_blocks(frame) else None
            if found is not None:
                return Reason(Site(frame.ref, test), text, found.kind, found)
    return None


def exits(function: s.Function, body: frozenset[int]) -> Sequence[tuple[int, int]]:
    """The blocks of a loop, with their conditions, that lead out of it in one arm and go on with it in the other."""
    found: list[tuple[int, int]] = []
    for number in sorted(body):
        block = function.blocks[number]
        if block.test is None or isinstance(function.operations[block.test], (s.Next, s.Matches, s.Caught)):
            continue
        arms = {edge.kind: edge.target for edge in block.edges}
        if {"true", "false"} <= arms.keys() and (arms["true"] in body) != (arms["false"] in body):
            found.append((number, block.test))
    return found
