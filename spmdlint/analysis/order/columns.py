"""Arrays whose columns lie in an order of this process's own: ``np.stack([table[name] for name in names], axis=1)``.

The rows of an array that is put together from the processes' parts may be in any order, as each process has its own;
what another dimension lists must be the same everywhere.
"""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Constant, External, Frame, constant
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.evened import ARRANGING
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property, Reason
from spmdlint.program import summary as s

_FIRST = frozenset((None, 0))


class Columns(Property):
    """A dimension other than the first is in the order that ``order`` follows, in an array or in a tree of arrays."""

    def __init__(self, order: Origins) -> None:
        self.order = order

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, s.DictDisplay):
            return origins.any_of(frame, operation.values)
        if isinstance(operation, s.Display):
            return origins.any_of(frame, operation.elements)
        if isinstance(operation, s.Collected):  # rows that are lists, or the arrays of a tree by their names
            listed = self.order.of(frame, operation.element) if operation.kind == "list" else None
            return listed or origins.of(frame, operation.element)
        if isinstance(operation, (s.Item, s.Subscript)):
            found = of_element(origins, frame, operation)
            base = operation.value if isinstance(operation, s.Item) else operation.base
            return origins.of(frame, base) if found == CONTINUE else found
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        return CONTINUE

    def _call(
        self, origins: Origins, frame: Frame, number: int, operation: s.Call
    ) -> Reason | Literal["continue"] | None:
        for callee in ordered(origins.ev.value(frame, operation.function)):
            known = origins.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.stacks and operation.arguments:
                stacked = operation.arguments[0].value
                axis = passed(operation, "axis", known.positional)
                place = constant(origins.ev.value(frame, axis)) if axis is not None else Constant(known.along)
                across = place is not None and place.value not in _FIRST
                found = self.order.of(frame, stacked) if across else None
                found = found or origins.of(frame, stacked)
                return origins.step(frame, number, "an array is made of them", found) if found is not None else None
        method = frame.code.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in ARRANGING:
            return origins.of(frame, method.base)
        return CONTINUE
