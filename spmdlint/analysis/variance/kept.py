"""Functions that objects keep in their fields: what is called by the name of a field is what the constructor got."""

from __future__ import annotations

from spmdlint.analysis.callgraph.constructed import Constructed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Frame, Free, FunctionValue, Instance, Unknown, Value, certain
from spmdlint.program import summary as s

MAX_KEPT = 4
"""Constructions that are asked for what they keep; with more of them nobody knows which object it is."""


def callees(ev: Evaluator, constructed: Constructed, frame: Frame, number: int) -> list[Value]:
    """What a call may call, by the number of what it calls; a field of an unknown object is one that objects keep."""
    values = list(ordered(ev.value(frame, number)))
    field = frame.code.operations[number]
    if not isinstance(field, s.Attribute) or not all(isinstance(each, (Free, Unknown)) for each in values):
        return values
    owners = ev.objects.by_name.owners(frame, field.base, field.name)
    kept: list[Value] = []
    for owner in ordered(owners):
        given = list(constructed.given(owner.cls, field.name)) if isinstance(owner, Instance) else []
        if len(given) > MAX_KEPT:
            return values
        for where, _, value in given:
            function = certain(ev.value(where, value))
            if isinstance(function, FunctionValue):
                kept.append(function)
    return kept or values
