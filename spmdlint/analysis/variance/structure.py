"""Decides which trees of arrays differ in structure between processes: None or empty where others have a value.

A call that JAX maps over the leaves of a tree joins no communication for a tree without leaves, so a process that
passes None instead of a value leaves the others waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.grown import Grown, of_other_lengths
from spmdlint.analysis.variance.guarded import decided, guarded, tells_who
from spmdlint.analysis.variance.narrowed import narrowed
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.presence import is_none
from spmdlint.analysis.variance.shape import MAPPERS
from spmdlint.program import summary as s

_FOLLOWED = (s.Load, s.Store, s.Attribute, s.Parameter, s.Await, s.BoolOp)


class Structure(Property):
    """The tree structure differs between processes."""

    def __init__(self, facets: OtherFacets, control: Control) -> None:
        self.facets = facets
        self.control = control
        self.conditions = control.ev.once(Conditions)
        self.grown = Grown(facets, control)

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.IfExp):
            found = self.facets.content.why(frame, operation.test)
            if _differ(origins, frame, (operation.body, operation.orelse)):
                return found if found is not None and _tells(found) else None
            return CONTINUE if found is None else None  # the code that takes an arm may know that there is a value
        if isinstance(operation, (s.Display, s.DictDisplay)):
            return origins.any_of(frame, operation.elements)
        if isinstance(operation, s.Item):
            return of_element(origins, frame, operation)
        if isinstance(operation, s.Call):
            return self._call(origins, frame, operation)
        if isinstance(operation, s.Load):
            if narrowed(origins.ev, frame, number, operation) or guarded(
                self.facets.content, self.control, frame, number
            ):
                return None
            return self.grown.of_name(self.facets.content, frame, number, operation) or CONTINUE
        return CONTINUE if isinstance(operation, _FOLLOWED) else None

    @staticmethod
    def _call(origins: Origins, frame: Frame, operation: s.Call) -> Answer:
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, External):
                known = origins.ev.knowledge.get(callee.name)
                # A record, or what a checkpointer is given: a tree of its arguments.
                records = known is not None and (known.kind == "record" or bool(known.given_to))
                parts = operation.arguments if records else operation.arguments[1:2]
                followed = records or callee.name in MAPPERS
                return origins.any_of(frame, [each.value for each in parts]) if followed else None
        return CONTINUE

    def chosen(
        self, origins: Origins, frame: Frame, name: str, places: Sequence[tuple[int, int | None]], use: int | None
    ) -> Reason | None:
        if not _differ(origins, frame, [value for _, value in places if value is not None]):
            return None
        places = self._not_covered(origins, frame, places)
        at = [place for place, _ in places]
        if self._stored_twice(frame, at, use):
            return None
        text = f"the structure of {name} depends on this"
        found = decided(self.facets.content, self.control, frame, at, use, text, _tells)
        nothing = [place for place, value in places if value is not None and is_none(origins, frame, value)]
        if found is None or not nothing:
            return found
        return found.then(Site(frame.ref, nothing[0]), f"{name} is None where nothing else is stored")

    def _not_covered(
        self, origins: Origins, frame: Frame, places: Sequence[tuple[int, int | None]]
    ) -> list[tuple[int, int | None]]:
        """The stores, except those that replace a value which was stored before under the same conditions."""
        block_of = frame.code.function.block_of
        held = {
            place: self.conditions.assumed(frame, block_of[place])
            for place, value in places
            if value is not None
            and not is_none(origins, frame, value)
            # A tuple instead of an array is a different structure.
            and not isinstance(frame.code.operations[frame.code.root_of(value)], s.Display)
        }
        covered = {
            place
            for place, here in held.items()
            for before, there in held.items()
            if before < place and here and there and there.items() <= here.items()
        }
        return [(place, value) for place, value in places if place not in covered]

    def _stored_twice(self, frame: Frame, places: Sequence[int], use: int | None) -> bool:
        """Whether one branch chooses after another: the later one may fill in what the earlier one left empty."""
        found = [
            b for b in self.control.choosing(frame, places, use) if self.facets.content.why(frame, b.test) is not None
        ]
        return any(
            one.block not in other.yes | other.no and other.block not in one.yes | one.no
            for one in found
            for other in found
            if one is not other
        )


def _tells(reason: Reason) -> bool:
    """Whether a reason separates processes from one another, or by the files that they see."""
    return tells_who(reason) or reason.kind == "files"


def _differ(origins: Origins, frame: Frame, values: Sequence[int]) -> bool:
    """Whether some of these trees differ in structure from the others, as far as is known."""
    missing = [is_none(origins, frame, value) for value in values]
    if any(missing):
        return not all(missing)
    found = [origins.ev.value(frame, value) for value in values]
    return any(of_other_lengths(found[0], other) for other in found[1:])
