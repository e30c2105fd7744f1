"""Functions that are chosen by the type of their first argument: ``functools.singledispatch``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.registered import tops
from spmdlint.analysis.evaluation.values import Arguments, Frame, FunctionValue, Values, certain, join
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_REGISTER = "register"


def implementations(ev: Evaluator, frame: Frame, arguments: Arguments) -> Values | None:
    """What a call of a dispatched function may run: itself, and what is registered for it; None if it is not known."""
    given = arguments.positional[0] if arguments.positional else None
    function = certain(given) if given is not None else None
    if given is None or not isinstance(function, FunctionValue):
        return None
    name = ev.project.function(function.ref).name
    return join(given, *(ev.value(place, made) for place, made in _registered(ev, frame, name)))


def _registered(ev: Evaluator, frame: Frame, name: str) -> Iterator[tuple[Frame, int]]:
    """The functions that are registered under a name: in the same scope, or at the top of a file of the program."""
    near = tops(ev, frame.ref, frozenset((_REGISTER, name)))
    for place in dict.fromkeys((frame, *near)):
        for _, call in place.code.of_kind(s.Call):
            if call.decorator and call.arguments and _registers(place, call.function, name):
                yield place, call.arguments[0].value


def _registers(frame: Frame, decorator: int, name: str) -> bool:
    """Whether a decorator is ``total.register`` or ``total.register(Array)``."""
    operations = frame.code.operations
    operation = operations[decorator]
    if isinstance(operation, s.Call):
        operation = operations[operation.function]
    if not isinstance(operation, s.Attribute) or operation.name != _REGISTER:
        return False
    base = operations[operation.base]
    return isinstance(base, (s.Load, s.Attribute)) and base.name == name
