"""Control dependence of values: the branches that choose which of several values reaches a place.

As in Ferrante, Ottenstein and Warren ("The Program Dependence Graph", 1987): code in one arm of a branch, up to where
the arms meet, depends on its condition. LLVM's uniformity analysis calls a value at the meeting point divergent for the
same reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.raised import calm, handled, ways
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.sharing import shared


class Branch(Struct, frozen=True):
    """A branch: its block, its condition, and the blocks that only one arm reaches before the arms meet."""

    block: int
    test: int
    yes: frozenset[int]
    no: frozenset[int]


class Control:
    """The branches of each function. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._known: dict[FunctionRef, tuple[Branch, ...]] = {}
        self._inside: dict[FunctionRef, dict[int, list[int]]] = {}

    def branches(self, ref: FunctionRef) -> tuple[Branch, ...]:
        """The branches of a function whose arms meet, and those in a loop that leave it past its `else` or the like."""
        if ref not in self._known:
            self._known[ref] = tuple(self._find(self.ev.project.function(ref), self.ev.flow(ref)))
        return self._known[ref]

    @staticmethod
    def _find(function: s.Function, flow: Flow) -> Iterator[Branch]:
        for number, block in enumerate(function.blocks):
            arms = {edge.kind: edge.target for edge in block.edges}
            if block.test is not None and isinstance(function.operations[block.test], s.Caught):
                yield from _clause(function, flow, number, block.test)
                continue
            if block.test is None or not {"true", "false"} <= arms.keys():
                continue
            if isinstance(function.operations[block.test], (s.Next, s.Matches)):
                continue
            join = flow.joins_at(number)
            yes, no = flow.reachable(arms["true"], without=join), flow.reachable(arms["false"], without=join)
            if number not in yes | no:
                yield Branch(number, block.test, shared(frozenset(yes - no)), shared(frozenset(no - yes)))
            else:
                yield from _exit(flow, number, block.test, join, (arms["true"], arms["false"]))

    def choosing(self, frame: Frame, places: Iterable[int], use: int | None) -> Iterator[Branch]:
        """The branches that choose between operations at these places for a later operation in block ``use``."""
        block_of = self.ev.function(frame).block_of
        blocks = {block_of[place] for place in places}
        live = self.ev.live_blocks(frame)
        around = self._around(frame.ref)
        branches = self.branches(frame.ref)
        for number in sorted({number for block in blocks for number in around.get(block, ())}):
            branch = branches[number]
            if branch.block in live and use not in branch.yes and use not in branch.no:
                yield branch

    def _around(self, ref: FunctionRef) -> dict[int, list[int]]:
        """For each block, the indices of the branches that have it in one of their arms."""
        if ref not in self._inside:
            found = self._inside[ref] = {}
            for number, branch in enumerate(self.branches(ref)):
                for block in branch.yes | branch.no:
                    found.setdefault(block, []).append(number)
        return self._inside[ref]


def _exit(flow: Flow, number: int, test: int, join: int, arms: tuple[int, int]) -> Iterator[Branch]:
    """A branch that leaves a loop in one arm: only the other arm comes to what follows once the loop has ended."""
    header = next(iter(flow.loops_around(number)), None)
    if header is None or not flow.leaves(number, header):
        return
    inside = flow.loop_body(header) | {header}
    yes, no = (flow.reachable_by(arm, lambda _, to: to not in (join, number)) - inside - {join} for arm in arms)
    if yes - no and no - yes:
        yield Branch(number, test, shared(frozenset(yes - no)), shared(frozenset(no - yes)))


def _clause(function: s.Function, flow: Flow, number: int, test: int) -> Iterator[Branch]:
    """A clause of a `try` as a branch: either an exception leads to it, or the `try` ends without one."""
    found = ways(function, flow, number)
    if found is None:
        return
    handler, join, tried = found
    otherwise = calm(flow, join, tried) - flow.reachable(handler, without=join)
    yield Branch(number, test, handled(flow, handler, join, tried), frozenset(otherwise - {number}))
