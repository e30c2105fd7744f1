"""Lists that hold only what belongs to this process, because of a comprehension's condition or an `if` in a loop."""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.transfers import through
from spmdlint.analysis.evaluation.values import External, Frame, Site, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.emptiness import filters
from spmdlint.analysis.variance.guarded import tells_who
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property, Reason
from spmdlint.program import summary as s


class OwnSelection(Property):
    """The value holds only elements that meet a condition which differs by process. ``content`` is that facet."""

    def __init__(self, content: Origins, control: Control) -> None:
        self.content = content
        self.control = control

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, s.Load):
            return self._filled(origins, frame, number) or CONTINUE
        if isinstance(operation, s.Collected):
            found = self._who(frame, filters(origins, frame, operation)) if operation.kind != "set" else None
            if found is not None:
                return Reason(Site(frame.ref, number), "the list takes only some of them", found.kind, found)
            loops = [frame.code.operations[loop] for loop in operation.loops]
            return origins.any_of(frame, [loop.iterable for loop in loops if isinstance(loop, s.Next)])
        if isinstance(operation, s.Call):
            callee = certain(origins.ev.value(frame, operation.function))
            if not isinstance(callee, External):
                return CONTINUE
            return origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "size"))
        if isinstance(operation, (s.Store, s.Attribute, s.Parameter, s.Import)):
            return CONTINUE
        return None

    def _filled(self, origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Why a list that a loop fills holds only what belongs to this process."""
        use = frame.code.function.block_of[number]
        for filled in filling_of(origins.ev, frame, number):
            chosen = [branch.test for branch in self.control.choosing(frame, (filled,), use)]
            found = self._who(frame, chosen)
            if found is not None:
                return Reason(Site(frame.ref, filled), "only some of them are put into it", found.kind, found)
        return None

    def _who(self, frame: Frame, tests: list[int]) -> Reason | None:
        for test in tests:
            found = self.content.of(frame, test)
            if found is not None and tells_who(found):
                return found
        return None
