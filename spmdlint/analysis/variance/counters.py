"""Counters that only some processes advance: after ``next(ids)`` under a guard, the counts of processes differ."""

from __future__ import annotations

from functools import cached_property

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Frame, Site
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_COUNTERS = ("itertools.count",)
_NEXT = frozenset(("next",))
_DEPTH = 3
"""How many levels of calls around the counting call are searched for a guard."""


class Counters:
    """Knows where each counter of the project is advanced. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach, control: Control) -> None:
        self.ev = evaluator
        self.reach = reach
        self.control = control

    def skewed(self, origins: Origins, frame: Frame, operation: s.Call) -> Reason | None:
        """Why a call of ``next`` returns a different number on some processes. ``origins`` is the content facet."""
        for site in self._made(frame, operation):
            for number, ref in self._advanced.get(site, ()):
                found = self._guard(origins, self.ev.free_frame(ref), number, _DEPTH)
                if found is not None:
                    text = "only some processes take a number from this counter here"
                    return Reason(Site(ref, number), text, found.kind, found)
        return None

    def _made(self, frame: Frame, operation: s.Call) -> list[Site]:
        """The places that make the counters which a call of ``next`` may advance."""
        given = self.ev.value(frame, operation.arguments[0].value) if operation.arguments else ()
        return sorted(value.site for value in given if isinstance(value, Applied) and value.name in _COUNTERS)

    @cached_property
    def _advanced(self) -> dict[Site, list[tuple[int, FunctionRef]]]:
        """The calls that advance each counter, by the place that makes the counter."""
        found: dict[Site, list[tuple[int, FunctionRef]]] = {}
        for ref in self.reach.calling((reading().next,)):
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_named(_NEXT).items():
                if self.ev.may_call(frame, call, reading().next):
                    for site in self._made(frame, call):
                        found.setdefault(site, []).append((number, ref))
        return found

    def _guard(self, origins: Origins, frame: Frame, number: int, depth: int) -> Reason | None:
        """Why an operation runs on some processes only: a branch around it, or around a call of its function."""
        for branch in self.control.choosing(frame, (number,), None):
            found = origins.of(frame, branch.test)
            if found is not None and found.kind == "identity":
                return found
        if depth == 0:
            return None
        for edge in self.reach.callers.get(frame.ref, ()):
            if edge.target.way == "call" and edge.caller.ref != frame.ref:
                found = self._guard(origins, self.ev.free_frame(edge.caller.ref), edge.number, depth - 1)
                if found is not None:
                    return found
        return None
