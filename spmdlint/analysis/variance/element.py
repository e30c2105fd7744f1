"""Variance of one element of a tuple that is written out, here or in a function that returns it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from spmdlint.analysis.evaluation.elements import elements, entries
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, constant
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Reason
from spmdlint.program import summary as s

_CALLS = 3  # calls above one another through which a tuple is passed


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
        given = _passed(origins, frame, base, _CALLS)
        places = [place for where, number in given for place in elements(origins.ev, where, number, index)]
    if not places:
        return CONTINUE
    return next((found for place in places if (found := _of_place(origins, frame, base, *place)) is not None), None)


def _passed(origins: Origins, frame: Frame, base: int, depth: int) -> Iterator[tuple[Frame, int]]:
    """The arguments that callers pass, if a tuple is a parameter, which they may have been passed themselves."""
    operation = frame.code.operations[frame.code.root_of(base)]
    if not isinstance(operation, s.Parameter) or depth == 0:
        return
    for where, number in origins.passed_for(frame, operation.name):
        yield where, number
        yield from _passed(origins, where, number, depth - 1)


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
