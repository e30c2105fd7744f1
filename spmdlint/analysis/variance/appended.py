"""What is put into a list one by one: the list holds what differs as soon as one of its elements does."""

from __future__ import annotations

from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_APPENDING = frozenset("append appendleft extend insert".split())


def of_appended(origins: Origins, frame: Frame, load: int) -> Reason | None:
    """Why an element differs that the function itself has put into the list of this name."""
    for number in filling_of(origins.ev, frame, load):
        call = frame.code.operations[number]
        method = frame.code.operations[call.function] if isinstance(call, s.Call) else None
        if isinstance(call, s.Call) and isinstance(method, s.Attribute) and method.name in _APPENDING:
            found = origins.any_of(frame, [argument.value for argument in call.arguments])
            if found is not None:
                return origins.step(frame, number, "it is put into a list there", found)
    return None
