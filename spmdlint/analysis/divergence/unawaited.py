"""Files that one process makes and all read, where nothing makes the others wait for that process.

The read comes after the branch that only some processes take, on every path, and is of the same path that is written
there. Anything that all processes do together in between counts as waiting, and so does a loop that sleeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.divergence.paths import PathUse, PathUses, Shape, lies_in, seen_outside
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import clauses_around
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import EXIT

_WAITS = ("sleep", "wait", "sync", "barrier")
"""Parts of the names of functions that wait for other processes, as far as names tell."""
_CALLS = 3
"""How many levels of calls may lie between a read and the branch that guards the making."""
_MAX_BLOCKS = 200
"""The most blocks after a branch that are searched."""


class UnawaitedFile(Struct, frozen=True):
    """Where a file is read, where some processes made it before, and the branch that guards the making."""

    site: Site
    made: Site
    branch: Site


class _Left(Struct, frozen=True):
    """A file that only some processes have made: where, and the branch that guards it."""

    path: Shape
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
        self.control = evaluator.once(Control)
        self.uses = PathUses(evaluator)
        self._left: dict[tuple[FunctionRef, int], tuple[_Left, ...]] = {}

    def found(self) -> Iterator[UnawaitedFile]:
        """Every such read, function by function."""
        for ref in self.ev.project.functions():
            if ref in self._concerned and not self.multi.tests_one_process(ref.path):
                yield from self._in_frame(self.ev.free_frame(ref))

    @cached_property
    def _concerned(self) -> frozenset[FunctionRef]:
        """The functions in which some processes make a file, and those that call them, by a few calls."""
        found: set[FunctionRef] = set()
        for ref in self.ev.project.functions():
            if ref in self.reach.host and self._several(ref):
                frame = self.ev.free_frame(ref)
                if self.uses.makes_any(frame) and any(True for _ in self._by_branches(frame)):
                    found.add(ref)
        latest = found
        for _ in range(_CALLS):
            edges = (edge for ref in latest for edge in self.reach.callers.get(ref, ()) if edge.target.way == "call")
            latest = {edge.caller.ref for edge in edges if edge.caller.ref in self.reach.host} - found
            found |= latest
        return frozenset(found)

    def _several(self, ref: FunctionRef) -> bool:
        """Whether a file is for several processes, by itself or by what uses it: an index need not come from JAX."""
        return self.multi.says(ref.path) or self.multi.surely_runs_several(ref.path)

    def _in_frame(self, frame: Frame) -> Iterator[UnawaitedFile]:
        reads: dict[int, UnawaitedFile] = {}
        for left, block, after in (*self._by_branches(frame), *self._by_calls(frame, _CALLS)):
            for number, call in self._behind(frame, block, after)[0]:
                if self._reads(frame, number, call, left.path):
                    reads.setdefault(number, UnawaitedFile(Site(frame.ref, number), left.made, left.branch))
                    break
        yield from reads.values()

    def _reads(self, frame: Frame, number: int, call: s.Call, path: Shape) -> bool:
        uses = [use for use in self.uses.of_call(frame, number, call) if lies_in(use.path, path)]
        tried = any(True for _ in clauses_around(frame.code.function, number))
        return bool(uses) and not any(use.writes for use in uses) and not tried

    def _by_branches(self, frame: Frame) -> Iterator[tuple[_Left, int, int]]:
        """The files that only some processes have made where a branch ends, and the block where it ends."""
        if not self._several(frame.ref):
            return
        blocks, live = frame.code.function.blocks, self.ev.live_blocks(frame)
        for number in sorted(live):
            test = blocks[number].test
            arms = [edge.target for edge in blocks[number].edges if edge.kind in ("true", "false")]
            if test is None or len(arms) != 2 or not live.issuperset(arms):
                continue
            join = frame.code.flow.joins_at(number)
            made = self._made(frame, arms, join)
            if made and self._is_identity(frame, test):
                for use in made:
                    yield _Left(use.path, Site(frame.ref, use.number), Site(frame.ref, test)), join, -1

    def _by_calls(self, frame: Frame, calls: int) -> Iterator[tuple[_Left, int, int]]:
        """The files that only some processes have made when a call returns, as the caller sees their paths."""
        for block in sorted(self.ev.live_blocks(frame)):
            for number, call in frame.code.calls_in([block]):
                callee = self.ev.callee(frame, call)
                left = self._left_by(callee.ref, calls) if isinstance(callee, FunctionValue) else ()
                if not left or not isinstance(callee, FunctionValue) or block in self._guarded(frame):
                    continue
                given = self.uses.passed(frame, call, callee)
                for each in left:
                    path = seen_outside(each.path, callee.ref, given)
                    if path is not None:
                        yield _Left(path, each.made, each.branch), block, number

    def _left_by(self, ref: FunctionRef, calls: int) -> tuple[_Left, ...]:
        """The files that only some processes have made when a function returns, and for which nothing waits."""
        if calls == 0 or ref not in self._concerned:
            return ()
        if (ref, calls) not in self._left:
            frame = self.ev.free_frame(ref)
            found = (*self._by_branches(frame), *self._by_calls(frame, calls - 1))
            awaited = [self._behind(frame, block, after)[1] for _, block, after in found]
            left = [each for (each, _, _), waits in zip(found, awaited, strict=True) if not waits]
            self._left[ref, calls] = tuple(left)
        return self._left[ref, calls]

    def _guarded(self, frame: Frame) -> frozenset[int]:
        """The blocks of a function that only some processes run."""
        branches = self.control.branches(frame.ref)
        return frozenset[int]().union(*(b.yes | b.no for b in branches if self._is_identity(frame, b.test)))

    def _is_identity(self, frame: Frame, test: int) -> bool:
        found = self.content.why(frame, test)
        return found is not None and found.kind == "identity"

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

    def _behind(self, frame: Frame, block: int, after: int) -> tuple[list[tuple[int, s.Call]], bool]:
        """The calls on every path from a block, up to the first that waits, and whether any does.

        Of the block itself, only the calls after an operation count.
        """
        flow, live = frame.code.flow, self.ev.live_blocks(frame)
        calls: list[tuple[int, s.Call]] = []
        seen = {EXIT}
        while block not in seen and len(seen) < _MAX_BLOCKS:
            seen.add(block)
            for number, call in frame.code.calls_in([block]):
                if number > after:
                    calls.append((number, call))
                    if self._call_waits(frame, number):
                        return calls, True
            after, following = -1, flow.joins_at(block)
            if self._waits(frame, [b for b in flow.order(block, following) if b != block and b in live]):
                return calls, True
            block = following
        return calls, False

    def _waits(self, frame: Frame, blocks: list[int]) -> bool:
        """Whether some of these blocks make a parallel call, or wait for something."""
        return any(self._call_waits(frame, number) for number, _ in frame.code.calls_in(blocks))

    def _call_waits(self, frame: Frame, number: int) -> bool:
        call = frame.code.operations[number]
        if not isinstance(call, s.Call):
            return False
        callee = frame.code.operations[call.function]
        name = callee.name.lower() if isinstance(callee, (s.Attribute, s.Load)) else ""
        return any(part in name for part in _WAITS) or any(True for _ in self.effects.of_call(frame, number, call))
