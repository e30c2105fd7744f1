"""Axis names held in a settings field whose object is unknown: the field holds some name, whichever it is.

A `jit` binds no axis name at all, so the code that it runs fails with any of them.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, Free, Values, certain, constant
from spmdlint.program import summary as s


def assumed_axis(ev: Evaluator, given: Values) -> str | None:
    """The default of the field that a value is, if its class annotates the field as a string; None otherwise."""
    field = certain(given)
    if not isinstance(field, Free):
        return None
    frame = ev.free_frame(field.ref)
    if frame.code.function.kind != "class":
        return None
    stores = [frame.code.operations[number] for number in frame.code.function.stores.get(field.name, ())]
    default = stores[0] if len(stores) == 1 else None
    if not isinstance(default, s.Store) or default.annotation is None:
        return None
    declared = frame.code.operations[default.annotation]
    known = constant(ev.value(frame, default.value))
    is_name = isinstance(declared, s.Load) and declared.name == "str"
    return known.value if is_name and isinstance(known, Constant) and isinstance(known.value, str) else None
