"""Which of several functions a value is: where a varying branch selects the callee, processes run different code."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.evaluation.values import Collection, DictionaryValue, Frame, Instance, Site, certain
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_CHOSEN = "which function is chosen depends on this"


class Choice(Property):
    """The value is a different function on some processes. ``content`` is the facet used to judge conditions."""

    def __init__(self, facets: OtherFacets, control: Control) -> None:
        self.facets = facets
        self.control = control

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.IfExp):
            if origins.ev.decided(frame, operation.test) is None:
                return self._by(frame, operation.test) or CONTINUE
            return CONTINUE
        if isinstance(operation, s.Item):
            return of_element(origins, frame, operation)
        if isinstance(operation, s.Subscript):
            table = origins.ev.function(frame).operations[frame.code.root_of(operation.base)]
            held = certain(origins.ev.value(frame, operation.base))
            listed = isinstance(table, (s.Display, s.DictDisplay)) or isinstance(held, (Collection, DictionaryValue))
            return self._by(frame, operation.index) if listed else None
        if isinstance(operation, s.Attribute):
            # The methods of objects of several classes are different functions.
            objects = (value for value in origins.ev.value(frame, operation.base) if isinstance(value, Instance))
            return (len({each.cls for each in objects}) > 1 and origins.why(frame, operation.base)) or CONTINUE
        kinds = (s.Load, s.Store, s.Attribute, s.Parameter, s.Call, s.Import)
        return CONTINUE if isinstance(operation, kinds) else None

    def stored(self, origins: Origins, ref: FunctionRef, number: int) -> Reason | None:
        """Why a field, or an outer name, holds another function on some processes: a branch decides about the store."""
        frame = origins.frame_of(ref)
        for branch in self.control.choosing(frame, (number,), None):
            found = self._by(frame, branch.test)
            if found is not None:
                return found
        return None

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        for branch in self.control.choosing(frame, [place for place, _ in places], use):
            found = self._by(frame, branch.test)
            if found is not None:
                return found
        return None

    def _by(self, frame: Frame, test: int) -> Reason | None:
        found = self.facets.content.why(frame, test)
        return found.then(Site(frame.ref, test), _CHOSEN, "choice") if found is not None else None
