"""One element of a tuple that is written out, here or where a function returns it."""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.evaluation.elements import elements
from spmdlint.analysis.evaluation.values import Frame, constant
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Reason
from spmdlint.program import summary as s


def of_element(origins: Origins, frame: Frame, operation: s.Subscript | s.Item) -> Reason | Literal["continue"] | None:
    """Why the element that is taken has the property; CONTINUE where nobody has written the tuple out."""
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
    return next((found for f, n in places if (found := origins.of(f, n)) is not None), None)
