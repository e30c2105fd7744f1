"""Which blocks of a function certainly run when the function runs, and how the arm of a branch ends.

An arm ends in an exception that stops the job, or leaves the job to the other processes.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.several import on_several
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.sharing import shared
from spmdlint.program.summary import ENTRY, EXIT, FAILURE

_LEAVES = frozenset(names("exits"))


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


def fails(ev: Evaluator, frame: Frame, arm: int, branch: int) -> bool:
    """Whether this arm always ends in an exception that stops the job; an arm that returns to its branch does not."""
    if _asserts(frame, arm):
        return True
    reached = ev.flow(frame.ref).reachable(arm)
    return FAILURE in reached and EXIT not in reached and branch not in reached


def leaves_quietly(ev: Evaluator, frame: Frame, arm: int) -> bool:
    """Whether an arm that fails ends its process without an error: ``sys.exit(0)``, ``raise SystemExit``."""
    operations = frame.code.operations
    blocks = (frame.code.function.blocks[block].operations for block in ev.flow(frame.ref).reachable(arm))
    last = [operations[numbers[-1]] for numbers in blocks if numbers]
    raised = [each.exception for each in last if isinstance(each, s.Raise)]
    return bool(raised) and all(number is not None and is_quiet(ev, frame, number) for number in raised)


def is_quiet(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether what is raised ends the process without an error."""
    made = frame.code.operations[number]
    if isinstance(made, s.Call) and made.arguments:
        status = frame.code.operations[made.arguments[0].value]
        if not isinstance(status, s.Const) or status.value not in (0, None):
            return False
    callees = ev.value(frame, made.function if isinstance(made, s.Call) else number)
    return any(isinstance(v, External) and v.name in _LEAVES for v in callees)


def _asserts(frame: Frame, arm: int) -> bool:
    """Whether an arm is that of a failing `assert`: no program relies on that, whoever may catch it."""
    function = frame.code.function
    numbers = function.blocks[arm].operations
    last = function.operations[numbers[-1]] if numbers else None
    if not isinstance(last, s.Raise):
        return False
    told = function.operations[last.exception] if last.exception is not None else None
    return told is None or isinstance(told, s.FString) or (isinstance(told, s.Const) and type(told.value) is str)
