"""Collections and strings that are written out: ``("batch", axis)``, ``{"axis_name": axis}``, ``f"{axis}_model"``."""

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
    """What a tuple, list or set is that is written out."""
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
    """What a dictionary is that is written out."""
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
    """What an f-string is, where all of its parts are known."""
    parts = [constant(ev.value(frame, part)) for part in operation.parts]
    known = [part.value for part in parts if part is not None]
    if len(known) == len(parts) and all(isinstance(part, (str, int)) for part in known):
        return one(Constant("".join(str(part) for part in known)))
    return ANYTHING
