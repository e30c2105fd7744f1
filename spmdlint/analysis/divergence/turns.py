"""Blocks that processes enter in turn: a context manager that waits before its block on some, and after it on others.

Such a manager is correct in itself: every process makes the same calls. A parallel call inside its block is not:
process 0 makes it while the others still wait for that block to end.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason
from spmdlint.program import summary as s
from spmdlint.program.summary import ENTRY


class Turn(Struct, frozen=True):
    """A parallel call in such a block; ``manager`` is where it is entered, ``branch`` decides whose turn it is."""

    call: ParallelCall
    manager: Site
    branch: Site
    reason: Reason
    name: str


class Turns:
    """Checks every ``with`` block of a context manager that is written as a generator."""

    def __init__(self, evaluator: Evaluator, reach: Reach, effects: Effects, facets: Facets) -> None:
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.facets = facets
        self.conditions = evaluator.once(Conditions)

    def found(self) -> Iterator[Turn]:
        """The first parallel call of every such block."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for number, entered in frame.code.of_kind(s.Enter) if ref in self.reach.host else ():
                yield from self._block(frame, number, entered)

    def _block(self, frame: Frame, number: int, entered: s.Enter) -> Iterator[Turn]:
        manager = self.ev.managed(frame, entered)
        if manager is None:
            return
        leaves = [at for at, left in frame.code.of_kind(s.Leave) if left.manager == entered.manager]
        inside = range(number, max(leaves, default=number))
        blocks = {frame.code.function.block_of[at] for at in inside} & self.ev.live_blocks(frame)
        own = [call for call in self.effects.of_blocks(frame, sorted(blocks)) if call.site.number in inside]
        decided = self._whose_turn(manager) if own and own[0].strength == "strong" else None
        if decided is not None:
            name = self.ev.project.function(manager.ref).name
            yield Turn(own[0], Site(frame.ref, entered.manager), *decided, name)

    def _whose_turn(self, frame: Frame) -> tuple[Site, Reason] | None:
        """The process condition that decides whether a generator makes its calls before its ``yield`` or after it."""
        function = self.ev.function(frame)
        yields = [number for number, _ in frame.code.of_kind(s.Yield)]
        if len(yields) != 1:
            return None
        for block in sorted(self.ev.live_blocks(frame)):
            test = function.blocks[block].test
            key = self.conditions.key(frame, test) if test is not None else None
            reason = self.facets.content.why(frame, test) if test is not None and key is not None else None
            if test is None or key is None or reason is None or reason.kind != "identity":
                continue
            first, second = (
                self._parts(frame, yields[0], self.conditions.closed(frame, {key[0]: a})) for a in (True, False)
            )
            if first[0] != second[0] and sum(first, ()) == sum(second, ()):
                return Site(frame.ref, test), reason
        return None

    def _parts(
        self, frame: Frame, place: int, closed: frozenset[tuple[int, int]]
    ) -> tuple[tuple[object, ...], tuple[object, ...]]:
        """The calls made before a ``yield``, and those after it."""
        order = self.ev.flow(frame.ref).order(ENTRY, None, closed)
        live = self.ev.live_blocks(frame)
        calls = self.effects.of_blocks(frame, [block for block in order if block in live])
        before = tuple(call.same for call in calls if call.site.number < place)
        return before, tuple(call.same for call in calls if call.site.number > place)
