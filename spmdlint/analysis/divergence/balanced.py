"""Calls of some processes only that are balanced in the callers: ``enter()`` on one process, ``leave()`` on others.

A barrier that all processes but the first make in ``__enter__``, and the first in ``__exit__``, is one call of each:
who judges the two methods one by one sees a fault in both. So a condition on the process is also judged in the
functions that call, each as a whole (call strings of length two: Sharir and Pnueli, 1981).
"""

from __future__ import annotations

from spmdlint.analysis.callgraph.effects import MAX_CALLS, Effects, ParallelCall, same_calls
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.conditions import Conditions, Key, is_about_process
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import ENTRY, EXIT

_DEPTH = 2
"""How many calls up the callers are asked."""


class Balanced:
    """Asks the callers of a function. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach, effects: Effects, conditions: Conditions) -> None:
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.conditions = conditions

    def by_callers(self, frame: Frame, test: int, depth: int = _DEPTH) -> bool:
        """Whether in each caller of a function all processes make the same calls, whichever way a condition goes.

        It must be a condition on the process alone, which has the same answer everywhere in the program.
        """
        key = self.conditions.key(frame, test)
        return key is not None and is_about_process(key[0]) and self._in_callers(frame.ref, key[0], depth)

    def _in_callers(self, ref: FunctionRef, key: Key, depth: int) -> bool:
        edges = self.reach.callers.get(ref, ())
        callers = {edge.caller.ref for edge in edges} | self.effects.readers(ref)
        if not callers or depth == 0 or ref in callers or any(edge.target.way != "call" for edge in edges):
            return False
        return all(self._is_even(caller, key) or self._in_callers(caller, key, depth - 1) for caller in callers)

    def _is_even(self, ref: FunctionRef, key: Key) -> bool:
        """Whether a function as a whole makes the same calls on the processes where a condition holds as on others."""
        one, other = (self._calls(ref, key, answer) for answer in (True, False))
        asked = (self._is_made(call, key, answer) for answer, made in ((True, one), (False, other)) for call in made)
        return 0 < len(one) < MAX_CALLS and same_calls(one, other) and None not in asked

    def _calls(self, ref: FunctionRef, key: Key, answer: bool) -> tuple[ParallelCall, ...]:
        frame = self.ev.free_frame(ref)
        live = self.ev.live_blocks(frame)
        order = [block for block in self._order(frame, key, answer) if block in live]
        return tuple(c for c in self.effects.of_blocks(frame, order) if self._is_made(c, key, answer) is not False)

    def _is_made(self, call: ParallelCall, key: Key, answer: bool) -> bool | None:
        """Whether each function on the way to a call goes on to it; None if a different condition decides it."""
        made: bool | None = True
        for site in call.path[1:]:
            inside = self.ev.free_frame(site.ref)
            block = inside.code.function.block_of[site.number]
            if block not in self._order(inside, key, answer):
                return False
            if EXIT in self._order(inside, key, answer, until=block):
                made = None
        return made

    def _order(self, frame: Frame, key: Key, answer: bool, until: int | None = None) -> tuple[int, ...]:
        closed = self.conditions.closed(frame, {key: answer}, first=True)
        return tuple(self.ev.flow(frame.ref).order(ENTRY, until, closed, caught=True))
