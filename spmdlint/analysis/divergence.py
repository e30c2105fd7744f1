"""The divergence check: a branch on a value that varies, whose arms make different parallel calls.

As PARCOACH does for MPI: for each branch, compare the ordered calls from either arm up to where they meet (the
immediate post-dominator). Equal calls in both arms are no divergence. An arm that always raises ends the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spmdlint.analysis.effects import Effects, ParallelCall
from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.origins import Origins, Reason
from spmdlint.analysis.reach import Reach
from spmdlint.analysis.values import Frame, Site
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import EXIT, FAILURE


@dataclass(frozen=True, slots=True)
class Divergence:
    """A branch, why its condition varies, and the first parallel call that only one arm makes."""

    branch: Site
    reason: Reason
    call: ParallelCall
    others: tuple[ParallelCall, ...]
    early_exit: bool


class Divergences:
    """Runs the check over the functions that run outside of traced code."""

    def __init__(self, evaluator: Evaluator, reach: Reach, effects: Effects, variance: Origins) -> None:
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.variance = variance
        self._by_hand: set[Path] | None = None

    def branches(self) -> Iterator[Divergence]:
        """Every divergence by a condition, innermost branches first; one per branch."""
        for ref in self.ev.project.functions():
            if ref in self.reach.host:
                yield from self._in_function(ref)

    def _in_function(self, ref: FunctionRef) -> Iterator[Divergence]:
        frame = self.ev.free_frame(ref)
        function = self.ev.function(frame)
        live = self.ev.live_blocks(frame)
        told: set[Site] = set()
        found: list[tuple[int, Divergence]] = []
        for number in sorted(live):
            block = function.blocks[number]
            arms = {edge.kind: edge.target for edge in block.edges if edge.kind in ("true", "false")}
            if block.test is None or len(arms) < 2 or isinstance(function.operations[block.test], s.Caught):
                continue
            divergence = self._at_branch(frame, number, arms["true"], arms["false"])
            if divergence is not None:
                size = len(self.ev.flow(ref).reachable(number, without=self.ev.flow(ref).joins_at(number)))
                found.append((size, divergence))
        # The innermost guard of a call is the one to mend; the outer ones say nothing new of it.
        for _, divergence in sorted(found, key=lambda pair: pair[0]):
            if divergence.call.site not in told:
                told.update(call.site for call in (divergence.call, *divergence.others))
                yield divergence

    def _at_branch(self, frame: Frame, number: int, yes: int, no: int) -> Divergence | None:
        function = self.ev.function(frame)
        test = function.blocks[number].test
        assert test is not None
        flow = self.ev.flow(frame.ref)
        join = flow.joins_at(number)
        if self._fails(frame, yes) or self._fails(frame, no):
            return None
        first = self._calls(frame, yes, join, number)
        second = self._calls(frame, no, join, number)
        if [call.same for call in first] == [call.same for call in second]:
            return None
        reason = self.variance.of(frame, test)
        if reason is None:
            return None
        if reason.kind == "group":
            # Processes without devices of a group leave its calls out, and may.
            first, second = (tuple(c for c in calls if c.everyone) for calls in (first, second))
        different = _first_difference(first, second)
        if different is None:
            return None
        call, others = different
        return Divergence(Site(frame.ref, test), reason, call, others, early_exit=join == EXIT)

    def _calls(self, frame: Frame, arm: int, join: int, branch: int) -> tuple[ParallelCall, ...]:
        order = self.ev.flow(frame.ref).order(arm, without=join)
        live = self.ev.live_blocks(frame)
        calls = self.effects.of_blocks(frame, [block for block in order if block in live and block != branch])
        return tuple(call for call in calls if call.strength == "strong" or not self._maps_by_hand(frame.ref))

    def _maps_by_hand(self, ref: FunctionRef) -> bool:
        """Does the module map by hand, as with `pmap`: a bare `jit` beside it works on what one process holds."""
        if self._by_hand is None:
            known = self.ev.knowledge
            self._by_hand = {
                use.site.ref.path
                for use in self.reach.uses
                if (entry := known.get(use.applied.name)) is not None and entry.by_hand
            }
        return ref.path in self._by_hand

    def _fails(self, frame: Frame, arm: int) -> bool:
        """Does this arm always end in an exception, which stops the job."""
        reached = self.ev.flow(frame.ref).reachable(arm)
        return FAILURE in reached and EXIT not in reached


def _first_difference(
    first: tuple[ParallelCall, ...], second: tuple[ParallelCall, ...]
) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The first call at which two sequences part, and what else only that sequence has."""
    length = max(len(first), len(second))
    for position in range(length):
        a = first[position] if position < len(first) else None
        b = second[position] if position < len(second) else None
        if a is not None and b is not None and a.same == b.same:
            continue
        longer = first if a is not None else second
        return longer[position], longer[position + 1 :]
    return None
