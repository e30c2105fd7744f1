"""Functions that stand for others: what an object keeps in a field, and what implements an abstract method."""

from __future__ import annotations

from msgspec.structs import replace

from spmdlint.analysis.callgraph.constructed import Constructed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Frame, Free, FunctionValue, Instance, Unknown, Value, certain
from spmdlint.program import summary as s

MAX_KEPT = 16
"""The most constructions to search for what they keep; with more of them, the object cannot be identified."""


def callees(ev: Evaluator, constructed: Constructed, frame: Frame, number: int) -> list[Value]:
    """What a call may call, by its function operand; a field of an unknown object is what constructors were given."""
    values = [each for value in ordered(ev.value(frame, number)) for each in _implemented(ev, value)]
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


def _implemented(ev: Evaluator, value: Value) -> list[Value]:
    """The methods that may stand for an abstract one; any other value itself."""
    if not isinstance(value, FunctionValue):
        return [value]
    made = ev.objects.abstract.implementations(value.ref)
    return [replace(value, ref=ref) for ref in made] or [value]
