"""Elements that are put into a list one by one: the list varies as soon as one of its elements does."""

from __future__ import annotations

from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_APPENDING = frozenset("append appendleft extend insert".split())


def of_appended(origins: Origins, frame: Frame, load: int) -> Reason | None:
    """Why an element varies that the function itself puts into the list with this name."""
    for number in filling_of(origins.ev, frame, load):
        call = frame.code.operations[number]
        method = frame.code.operations[call.function] if isinstance(call, s.Call) else None
        if isinstance(call, s.Call) and isinstance(method, s.Attribute) and method.name in _APPENDING:
            found = origins.any_of(frame, [argument.value for argument in call.arguments])
            if found is not None:
                return origins.step(frame, number, "it is put into a list here", found)
    return None


def put_into(frame: Frame, lists: list[int]) -> list[int]:
    """The values put into these lists and dictionaries: a function that is given one is given its elements."""
    found: list[int] = []
    for number in lists:
        load = frame.code.operations[number]
        puts = frame.code.filling.get(load.name, ()) if isinstance(load, s.Load) else ()
        for put in puts:
            made = frame.code.operations[put]
            found += [argument.value for argument in made.arguments] if isinstance(made, s.Call) else []
            found += [made.value] if isinstance(made, s.StoreSubscript) else []
    return found
