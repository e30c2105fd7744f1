"""Whether there is a value at all, or None: what ``x is None`` tests, and what may differ where the value does not.

The process index differs between processes, but it is never None; a result that only process 0 sets is None on the
others.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Constant, External, Frame, FunctionValue, Site, certain
from spmdlint.analysis.variance.agreed import is_agreed
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.guarded import decided, set_by_some, tells_who
from spmdlint.analysis.variance.handed import Handed
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class Presence(Property):
    """The value is None on some processes and not on others."""

    def __init__(self, facets: OtherFacets, control: Control, handed: Handed) -> None:
        self.facets = facets
        self.control = control
        self.handed = handed

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.IfExp):
            if is_none(origins, frame, operation.body) != is_none(origins, frame, operation.orelse):
                return self.facets.content.why(frame, operation.test) or CONTINUE
            return CONTINUE
        if isinstance(operation, (s.Item, s.Subscript)):
            found = of_element(origins, frame, operation)
            return None if found == CONTINUE else found
        if isinstance(operation, s.Call):
            for callee in ordered(origins.ev.value(frame, operation.function)):
                if isinstance(callee, External):
                    if callee.name == reading().next and len(operation.arguments) == 2:
                        found = self.facets.length.why(frame, operation.arguments[0].value)
                        text = "it ends after a different number of steps on each process"
                        return origins.step(frame, number, text, found)
                    known = origins.ev.knowledge.get(callee.name)
                    return self.facets.content.why(frame, number) if known is not None and known.optional else None
            return CONTINUE
        if isinstance(operation, s.Attribute):
            return set_by_some(self.facets.content, self.control, frame, number) or CONTINUE
        if isinstance(operation, (s.Load, s.Store, s.Parameter, s.BoolOp, s.Await)):
            return CONTINUE
        return None

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """Why a call that gives this process's part of the data may give nothing: the part may be exhausted."""
        if not isinstance(operation, s.Call) or self._all_agree(origins, frame, operation):
            return None
        taken = self.handed.part_of(frame, number)
        text = "this process's part of the data may be exhausted"
        return Reason(taken, text, "named") if taken is not None else None

    def _all_agree(self, origins: Origins, frame: Frame, call: s.Call) -> bool:
        """Whether a function of the project returns None only where all processes have agreed to."""
        given: list[bool] = []
        for callee in origins.ev.value(frame, call.function):
            if not isinstance(callee, FunctionValue):
                return False
            inner = origins.ev.free_frame(callee.ref)
            for number, returned in inner.code.of_kind(s.Return):
                value = inner.code.operations[returned.value] if returned.value is not None else None
                if value is None or returned.value is None or is_none(origins, inner, returned.value):
                    tests = [branch.test for branch in self.control.choosing(inner, (number,), None)]
                elif isinstance(value, s.IfExp) and any(is_none(origins, inner, n) for n in (value.body, value.orelse)):
                    tests = [value.test]
                else:
                    continue
                given.append(any(is_agreed(origins.ev, inner, test) for test in tests))
        return bool(given) and all(given)

    def stored(self, origins: Origins, ref: FunctionRef, number: int) -> Reason | None:
        """Why a field, or an outer name, is filled on some processes only: the others keep its earlier value."""
        frame = origins.frame_of(ref)
        operation = origins.ev.function(frame).operations[number]
        if not isinstance(operation, (s.StoreAttribute, s.Store)) or is_none(origins, frame, operation.value):
            return None
        text = f"whether {operation.name!r} is filled depends on this"
        return decided(self.facets.content, self.control, frame, (number,), None, text)

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        missing = [place for place, value in places if value is None or is_none(origins, frame, value)]
        if not missing or len(missing) == len(places):
            return None
        text = f"whether {name} is None depends on this"
        found = decided(self.facets.content, self.control, frame, missing, use, text)
        return found or self._given(frame, [place for place, _ in places if place not in missing], use, text)

    def _given(self, frame: Frame, given: Sequence[int], use: int | None, text: str) -> Reason | None:
        """Why only some processes give a name a value, while the others leave it at None."""
        blocks = {frame.code.function.block_of[place] for place in given}
        for branch in self.control.choosing(frame, given, use):
            if blocks & branch.yes and blocks & branch.no:
                continue
            found = of_truth(self.facets.content, frame, branch.test)
            if found is not None and tells_who(found):
                return found.then(Site(frame.ref, branch.test), text)
        return None


def is_none(origins: Origins, frame: Frame, value: int) -> bool:
    """Whether a value is certainly None."""
    return certain(origins.ev.value(frame, value)) == Constant(None)
