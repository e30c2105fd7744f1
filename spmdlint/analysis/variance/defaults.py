"""Default values of the fields of a class: the values in its body, and the functions that make them."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.standard import FIELD_FUNCTIONS
from spmdlint.analysis.evaluation.values import Applied, Arguments, External, Frame, FunctionValue, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_FACTORIES = ("default_factory", "factory")


def default_values(evaluator: Evaluator, cls: FunctionRef, name: str) -> Iterator[int]:
    """The values that the body of a class gives a field, except functions and calls."""
    frame = evaluator.free_frame(cls)
    operations = frame.code.operations
    for value in _stored(frame, name):
        made = operations[value]
        if isinstance(made, s.Call):
            if _declares(evaluator, frame, value):
                yield from (argument.value for argument in made.arguments if argument.keyword == "default")
        elif not isinstance(made, s.MakeFunction):
            yield value


def factories(evaluator: Evaluator, cls: FunctionRef, name: str) -> Iterator[tuple[int, Frame | External]]:
    """The functions that make the default of a field: where each is named, and its frame, or that of a library."""
    frame = evaluator.free_frame(cls)
    for value in _stored(frame, name):
        made = frame.code.operations[value]
        if isinstance(made, s.Call) and _declares(evaluator, frame, value):
            for argument in made.arguments:
                factory = certain(evaluator.value(frame, argument.value)) if argument.keyword in _FACTORIES else None
                if isinstance(factory, FunctionValue):
                    entered = evaluator.entered_frame(factory, Arguments(), 1)
                    if entered is not None:
                        yield argument.value, entered
                elif isinstance(factory, External):
                    yield argument.value, factory


def _stored(frame: Frame, name: str) -> list[int]:
    operations = frame.code.operations
    stores = [operations[number] for number in frame.code.function.stores.get(name, ())]
    return [store.value for store in stores if isinstance(store, s.Store)]


def _declares(evaluator: Evaluator, frame: Frame, value: int) -> bool:
    made = certain(evaluator.value(frame, value))
    return isinstance(made, Applied) and made.name in FIELD_FUNCTIONS
