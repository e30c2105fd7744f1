"""Names of axes that a field of settings holds, where nobody knows which settings: a name, whichever it is.

A `jit` binds no name at all, so what it runs fails with each of them.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, Free, Values, certain, constant
from spmdlint.program import summary as s


def assumed_axis(ev: Evaluator, given: Values) -> str | None:
    """The default of a field that its class declares as a string, where a value is such a field."""
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
