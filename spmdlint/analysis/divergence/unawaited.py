"""Files that one process makes and all read, where nothing makes the others wait for that process.

The read comes after the branch that only some processes take, on every path, and is of the same path that is written
there. Anything that all processes do together in between counts as waiting, and so does a loop that sleeps.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects
from spmdlint.analysis.callgraph.multiprocess import MultiProcess
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.divergence.paths import PathUse, PathUses
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import clauses_around
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.variance.origins import Origins
from spmdlint.program import summary as s
from spmdlint.program.summary import EXIT

_WAITS = frozenset("sleep wait wait_until_finished barrier Barrier".split())
_MAX_BLOCKS = 200
"""The most blocks after a branch that are searched."""


class UnawaitedFile(Struct, frozen=True):
    """Where a file is read, where some processes made it before, and the branch that guards the making."""

    site: Site
    made: Site
    branch: Site


class UnawaitedFiles:
    """Searches after every branch on the process index. ``content`` says which conditions vary."""

    def __init__(
        self, evaluator: Evaluator, reach: Reach, effects: Effects, multi: MultiProcess, content: Origins
    ) -> None:
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.multi = multi
        self.content = content
        self.uses = PathUses(evaluator)

    def found(self) -> Iterator[UnawaitedFile]:
        """Every such read, function by function."""
        for ref in self.ev.project.functions():
            if ref in self.reach.host and self.multi.says(ref.path):
                frame = self.ev.free_frame(ref)
                if self.uses.makes_any(frame):
                    yield from self._in_frame(frame)

    def _in_frame(self, frame: Frame) -> Iterator[UnawaitedFile]:
        blocks, live = frame.code.function.blocks, self.ev.live_blocks(frame)
        for number in sorted(live):
            test = blocks[number].test
            arms = [edge.target for edge in blocks[number].edges if edge.kind in ("true", "false")]
            if test is None or len(arms) != 2 or not live.issuperset(arms):
                continue
            join = frame.code.flow.joins_at(number)
            made = self._made(frame, arms, join) if join != EXIT else []
            found = self.content.of(frame, test) if made else None
            if found is not None and found.kind == "identity":
                for use, maker in self._read_behind(frame, join, made):
                    yield UnawaitedFile(
                        Site(frame.ref, use.number), Site(frame.ref, maker.number), Site(frame.ref, test)
                    )
                    break

    def _made(self, frame: Frame, arms: list[int], join: int) -> list[PathUse]:
        """The files that one arm writes while the other does nothing; none if the first arm itself waits for others."""
        flow, live = frame.code.flow, self.ev.live_blocks(frame)
        for arm, other in (arms, reversed(arms)):
            order = [block for block in flow.order(arm, join) if block in live]
            calls = frame.code.calls_in([block for block in flow.order(other, join) if block in live])
            if not any(True for _ in calls) and not self._waits(frame, order):
                made = [use for block in order for use in self.uses.of_block(frame, block) if use.writes]
                if made:
                    return made
        return []

    def _read_behind(self, frame: Frame, join: int, made: list[PathUse]) -> Iterator[tuple[PathUse, PathUse]]:
        """The reads of those files on every path from a block, up to the first wait."""
        flow, live = frame.code.flow, self.ev.live_blocks(frame)
        block, seen = join, {EXIT}
        while block not in seen and len(seen) < _MAX_BLOCKS:
            seen.add(block)
            for number, call in frame.code.calls_in([block]):
                for use in self.uses.of_call(frame, number, call):
                    maker = next((each for each in made if each.path == use.path), None)
                    if maker is not None and not use.writes and not self._is_tried(frame, number):
                        yield use, maker
                if self._call_waits(frame, number):
                    return
            following = flow.joins_at(block)
            if self._waits(frame, [b for b in flow.order(block, following) if b != block and b in live]):
                return
            block = following

    @staticmethod
    def _is_tried(frame: Frame, number: int) -> bool:
        return any(True for _ in clauses_around(frame.code.function, number))

    def _waits(self, frame: Frame, blocks: list[int]) -> bool:
        """Whether some of these blocks make a parallel call, or wait for something."""
        return any(self._call_waits(frame, number) for number, _ in frame.code.calls_in(blocks))

    def _call_waits(self, frame: Frame, number: int) -> bool:
        call = frame.code.operations[number]
        if not isinstance(call, s.Call):
            return False
        callee = frame.code.operations[call.function]
        named = isinstance(callee, (s.Attribute, s.Load)) and callee.name in _WAITS
        return named or any(True for _ in self.effects.of_call(frame, number, call))
