"""Collection displays and f-strings: ``("batch", axis)``, ``{"axis_name": axis}``, ``f"{axis}_model"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Collection,
    Constant,
    DictionaryValue,
    Frame,
    Values,
    certain,
    constant,
    one,
)
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator


def display(ev: Evaluator, frame: Frame, operation: s.Display) -> Values:
    """The value of a tuple, list or set display."""
    elements: list[Values] = []
    is_open = False
    for position, number in enumerate(operation.elements):
        values = ev.value(frame, number)
        if position in operation.starred:
            inner = certain(values)
            if isinstance(inner, Collection):
                elements.extend(inner.elements)
                is_open = is_open or inner.open
            else:
                is_open = True
        else:
            elements.append(values)
    return one(Collection(operation.kind, tuple(elements), is_open))


def dictionary(ev: Evaluator, frame: Frame, operation: s.DictDisplay) -> Values:
    """The value of a dictionary display."""
    items: list[tuple[object, Values]] = []
    is_open = False
    for key, value in zip(operation.keys, operation.values, strict=True):
        known = constant(ev.value(frame, key)) if key is not None else None
        if known is None:
            is_open = True
        else:
            items.append((known.value, ev.value(frame, value)))
    return one(DictionaryValue(tuple(items), is_open))


def fstring(ev: Evaluator, frame: Frame, operation: s.FString) -> Values:
    """The value of an f-string, if all its parts are known."""
    parts = [constant(ev.value(frame, part)) for part in operation.parts]
    known = [part.value for part in parts if part is not None]
    if len(known) == len(parts) and all(isinstance(part, (str, int)) for part in known):
        return one(Constant("".join(str(part) for part in known)))
    return ANYTHING
