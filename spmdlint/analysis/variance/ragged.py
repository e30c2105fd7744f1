"""The longest, the shortest, or the sum of the lengths of some rows: most likely those of this process's own examples.

Lengths alone are no sign of data, since shapes and axes have lengths, too; what pads to the longest row has data.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Site, Values
from spmdlint.analysis.variance.reason import Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

_SUMMARIES = frozenset("max min sum sorted amax amin nanmax percentile quantile".split())
_LISTERS = frozenset("array asarray list tuple fromiter stack".split())


def summary_of_lengths(ev: Evaluator, frame: Frame, name: str, arguments: Iterable[int]) -> Reason | None:
    """Why what a library's function says of lengths is a size of the data."""
    if _last(name) not in _SUMMARIES:
        return None
    for argument in arguments:
        place = _lengths(ev, frame, argument)
        if place is not None:
            text = "the examples of every process have lengths of their own"
            return Reason(Site(frame.ref, place), text, "ragged")
    return None


def _lengths(ev: Evaluator, frame: Frame, number: int) -> int | None:
    """The operation that lists lengths of rows, where a value is such a list."""
    place = resolved(ev, frame, number)
    operation = ev.function(frame).operations[place]
    if isinstance(operation, s.Collected):
        return place if operation.kind != "set" and is_length_of_one(ev, frame, operation) else None
    if not isinstance(operation, s.Call) or not operation.arguments:
        return None
    first = operation.arguments[0].value
    for callee in ev.value(frame, operation.function):
        if isinstance(callee, External):
            if callee.name == "builtins.map" and _is_len(ev.value(frame, first)):
                return place
            if _last(callee.name) in _LISTERS:
                return _lengths(ev, frame, first)
    return None


def is_length_of_one(ev: Evaluator, frame: Frame, collected: s.Collected) -> bool:
    """Is an element of a comprehension the length of what it loops over: ``len(row)`` or ``row.shape[0]``."""
    function = ev.function(frame)
    element = function.operations[collected.element]
    if isinstance(element, s.Subscript):
        shape = function.operations[element.base]
        if not isinstance(shape, s.Attribute) or shape.name != "shape":
            return False
        asked = function.operations[shape.base]
    elif isinstance(element, s.Call) and len(element.arguments) == 1 and _is_len(ev.value(frame, element.function)):
        asked = function.operations[element.arguments[0].value]
    else:
        return False
    while isinstance(asked, s.Subscript):
        asked = function.operations[asked.base]
    names = {o.name for o in function.operations if isinstance(o, s.Store) and o.value in collected.loops}
    return isinstance(asked, s.Load) and asked.name in names


def _is_len(values: Values) -> bool:
    return any(isinstance(value, External) and value.name == "builtins.len" for value in values)


def _last(name: str) -> str:
    return name.rpartition(".")[2]
