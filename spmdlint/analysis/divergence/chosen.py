"""Calls of one of several functions that a varying condition chose: ``step = a if mine else b``, with a no-op on most.

The arms of the branch make no calls themselves, so comparing them shows nothing; what is called later does.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall, same_calls
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site
from spmdlint.analysis.variance.choice import CHOSEN
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Reason

_KNOWN = (Applied, FunctionValue, External)


class ChosenCall(Struct, frozen=True):
    """A call whose function a branch chose, why the choice varies, and the parallel calls of two of the choices."""

    branch: Site
    reason: Reason
    ways: tuple[tuple[ParallelCall, ...], tuple[ParallelCall, ...]]


class ChosenCalls:
    """Checks calls that run one of several functions. One per run."""

    def __init__(self, evaluator: Evaluator, effects: Effects, facets: Facets) -> None:
        self.ev = evaluator
        self.effects = effects
        self.facets = facets

    def of(self, frame: Frame) -> Iterator[ChosenCall]:
        """The calls in a function whose parallel calls depend on a choice that varies."""
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            callees = self.effects.callees(frame, call)
            if len(callees) < 2 or not all(isinstance(callee, _KNOWN) for callee in callees):
                continue
            ways = [tuple(self.effects.of_callee(frame, number, call, c)) for c in self.ev.in_order(callees)]
            other = next((way for way in ways[1:] if not same_calls(ways[0], way)), None)
            reason = self.facets.choice.of(frame, call.function) if other is not None else None
            if other is not None and reason is not None:
                branch = next(step.site for step in reason.chain() if step.text == CHOSEN)
                yield ChosenCall(branch, reason, (ways[0], other))
