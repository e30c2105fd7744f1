"""Variance of one element of a tuple that is written out, here or in a function that returns it."""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.evaluation.elements import elements, entries
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, constant
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Reason
from spmdlint.program import summary as s


def of_element(origins: Origins, frame: Frame, operation: s.Subscript | s.Item) -> Reason | Literal["continue"] | None:
    """Why the selected element has the property; CONTINUE if the tuple is not written out anywhere."""
    if isinstance(operation, s.Item):
        base, index = operation.value, operation.index
    else:
        known = constant(origins.ev.value(frame, operation.index))
        if known is None or not isinstance(known.value, int):
            return CONTINUE
        base, index = operation.base, known.value
    places = list(elements(origins.ev, frame, base, index))
    if not places:
        return CONTINUE
    return next((found for place in places if (found := _of_place(origins, frame, base, *place)) is not None), None)


def of_entry(origins: Origins, frame: Frame, base: int, key: str) -> Reason | None:
    """Why the value under a key of a dictionary that is written out has the property."""
    places = entries(origins.ev, frame, base, key)
    return next((found for place in places if (found := _of_place(origins, frame, base, *place)) is not None), None)


def _of_place(origins: Origins, frame: Frame, base: int, where: Frame, number: int) -> Reason | None:
    """Why an element has the property at the place that writes it; in a called function, as entered by that call."""
    root = frame.code.root_of(base)
    call = frame.code.operations[root]
    callees = origins.ev.value(frame, call.function) if isinstance(call, s.Call) else ()
    if where is not frame and any(isinstance(v, FunctionValue) and v.ref == where.ref for v in callees):
        return origins.within(where, frame, root, number)
    return origins.of(where, number)
