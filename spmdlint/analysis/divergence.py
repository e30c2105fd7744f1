"""The divergence check: a branch on a value that varies, whose arms make different parallel calls.

As PARCOACH does for MPI: for each branch, compare the ordered calls from either arm up to where they meet (the
immediate post-dominator). Equal calls in both arms are no divergence. An arm that always raises ends the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spmdlint.analysis.effects import Effects, ParallelCall
from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.origins import Origins, Reason
from spmdlint.analysis.reach import Reach
from spmdlint.analysis.values import External, Frame, Site, Values
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import EXIT, FAILURE

Hazard = Literal["condition", "loop", "unsteady", "checkpoint"]


@dataclass(frozen=True, slots=True)
class Divergence:
    """A branch, why its condition varies, and the first parallel call that only one arm makes."""

    branch: Site
    reason: Reason
    call: ParallelCall
    others: tuple[ParallelCall, ...]
    early_exit: bool
    loop: bool

    @property
    def hazard(self) -> Hazard:
        """Which hazard it is, so that one fault has one code: what the call does comes first, then the source."""
        if self.call.checkpoint:
            return "checkpoint"
        if self.reason.kind in ("identity", "group"):
            return "loop" if self.loop else "condition"
        return "unsteady"


class Divergences:
    """Runs the check over the functions that run outside of traced code."""

    def __init__(self, evaluator: Evaluator, reach: Reach, effects: Effects, variance: Origins, *, files: bool) -> None:
        self.files = files
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
            test = function.operations[block.test] if block.test is not None else None
            if isinstance(test, s.Next):
                divergence = self._at_loop(frame, number, test)
            elif test is not None and len(arms) == 2 and not isinstance(test, s.Caught):
                divergence = self._at_branch(frame, number, arms["true"], arms["false"])
            else:
                continue
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
        loop = any(edge.kind in ("back", "continue") for edge in self._edges_to(function, number))
        if reason.kind == "files" and not self.files:
            return None
        if reason.kind not in ("identity", "group"):
            # A clock or a file differs by chance. A bare jit behind it is local as often as not.
            first, second = (tuple(c for c in calls if c.strength == "strong") for calls in (first, second))
        elif reason.kind == "group" and not loop:
            # Processes without devices of a group leave its calls out, and may.
            first, second = (tuple(c for c in calls if c.everyone) for calls in (first, second))
        different = _first_difference(first, second)
        if different is None:
            return None
        call, others = different
        return Divergence(Site(frame.ref, test), reason, call, others, early_exit=join == EXIT, loop=loop)

    def _at_loop(self, frame: Frame, number: int, test: s.Next) -> Divergence | None:
        """A `for` over a range whose bounds vary, with parallel calls in its body."""
        function = self.ev.function(frame)
        iterated = function.operations[test.iterable]
        if not isinstance(iterated, s.Call) or not _is_range(self.ev.value(frame, iterated.function)):
            return None
        body = self.ev.flow(frame.ref).loop_body(number)
        order = [b for b in self.ev.flow(frame.ref).order(number) if b in body and b in self.ev.live_blocks(frame)]
        calls = self.effects.of_blocks(frame, order)
        if not calls or (calls[0].strength == "weak" and self._maps_by_hand(frame.ref)):
            return None
        reason = self.variance.of(frame, test.iterable)
        if reason is None or reason.kind not in ("identity", "group"):
            return None
        return Divergence(Site(frame.ref, test.iterable), reason, calls[0], calls[1:], early_exit=False, loop=True)

    @staticmethod
    def _edges_to(function: s.Function, target: int) -> Iterator[s.Edge]:
        return (edge for block in function.blocks for edge in block.edges if edge.target == target)

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


def _is_range(values: Values) -> bool:
    return any(isinstance(value, External) and value.name == "builtins.range" for value in values)
