"""Libraries that are told which processes take part: Orbax, by its ``MultiprocessingOptions``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Arguments, Collection, Frame, Instance, Value
from spmdlint.program import summary as s

_DEPTH = 4
_TOLD_BY = "MultiprocessingOptions"


def told_who_takes_part(ev: Evaluator, frame: Frame, call: s.Call) -> bool:
    """Does a call of a checkpointer, or of a method of one, go to the processes alone that its options name."""
    method = frame.code.operations[call.function]
    owners = ev.value(frame, method.base) if isinstance(method, s.Attribute) else frozenset()
    made = [v.arguments for v in owners if isinstance(v, (Applied, Instance)) and v.arguments is not None]
    return any(names_participants(ev, arguments) for arguments in (*made, ev.arguments(frame, call)))


def names_participants(ev: Evaluator, arguments: Arguments) -> bool:
    """Does a call say which processes take part, in an argument or in one of its options."""
    return any(_says(ev, value, _DEPTH) for value in _given(arguments))


def _says(ev: Evaluator, value: Value, depth: int) -> bool:
    if isinstance(value, Collection):
        return depth > 0 and any(_says(ev, each, depth - 1) for element in value.elements for each in element)
    if isinstance(value, Applied):
        name, arguments = value.name.rpartition(".")[2], value.arguments
    elif isinstance(value, Instance) and value.arguments is not None:
        name, arguments = ev.project.function(value.cls.ref).name, value.arguments
    else:
        return False
    given = _given(arguments)
    if name == _TOLD_BY:
        return bool(given) or arguments.open
    return depth > 0 and any(_says(ev, each, depth - 1) for each in given)


def _given(arguments: Arguments) -> list[Value]:
    each = (*arguments.positional, *(values for _, values in arguments.keywords))
    return [value for values in each for value in values]
