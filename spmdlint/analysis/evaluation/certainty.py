"""Which blocks of a function certainly run when the function runs."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.several import on_several
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.program import summary as s
from spmdlint.program.sharing import shared
from spmdlint.program.summary import ENTRY, EXIT


class Certainty:
    """Finds the blocks that no undecided branch guards, by frame. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._known: dict[tuple[Code, tuple[tuple[int, bool], ...]], frozenset[int]] = {}

    def blocks(self, frame: Frame) -> frozenset[int]:
        """The blocks that run whenever the function returns.

        Loop bodies count: nobody writes a loop that never runs.
        """
        key = (frame.code, self.ev.decisions(frame))
        found = self._known.get(key)
        if found is None:
            live, found = self.ev.live_blocks(frame), shared(frozenset(self._find(frame)))
            found = self._known[key] = live if len(live) == len(found) else found
        return found

    def _find(self, frame: Frame) -> Iterator[int]:
        function = self.ev.function(frame)
        live = self.ev.live_blocks(frame)
        flow = frame.code.flow
        decided = {block for block, _ in self.ev.decisions(frame)}
        guarded: set[int] = set()
        for number in live:
            block = function.blocks[number]
            if block.test is None:
                continue
            ways = {edge.kind: edge.target for edge in block.edges if edge.kind in ("true", "false")}
            arms = [target for target in ways.values() if target in live]
            if isinstance(function.operations[block.test], s.Caught):
                arms = [number]
            elif len(arms) < 2 or number in decided:
                continue
            elif (answer := on_several(self.ev, self.ev.free_frame(frame.ref), block.test)) is not None:
                arms = [target for kind, target in ways.items() if (kind == "true") is not answer]
            for arm in arms:
                guarded |= flow.guarded(number, arm)
        yield from (b for b in live if b not in guarded or b in (ENTRY, EXIT))
