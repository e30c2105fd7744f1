"""The values that a call passes for static parameters, which are part of the compiled program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmdlint.analysis.evaluation.bindings import by_position
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Constant,
    FunctionValue,
    Values,
    certain,
)
from spmdlint.program import summary as s

_PARAMETERS = ("static_argnames", "static_argnums", "static_broadcasted_argnums")


def static_arguments(
    evaluator: Evaluator, callee: Applied, operation: s.Call, formals: Sequence[str]
) -> Iterator[tuple[str | None, int]]:
    """The static parameters of a jit or map, each with the value that a call passes for it.

    ``formals`` are the parameters of the function behind it, as far as they are known; a position beyond them has no
    name. The receiver of a method is not among them, but it counts if the method was compiled before it was bound.
    """
    before = 0 if callee.receiver is None else 1
    for parameter in _PARAMETERS:
        for given_as in _constants(evaluator.argument(callee, parameter)):
            chosen = given_as - before if type(given_as) is int else given_as
            if isinstance(chosen, str):
                name, value = chosen, _passed(operation, formals, chosen)
            elif isinstance(chosen, int) and 0 <= chosen < len(formals):
                name, value = formals[chosen], _passed(operation, formals, formals[chosen])
            elif isinstance(chosen, int) and 0 <= chosen < len(given := by_position(operation)):
                yield None, given[chosen]
                continue
            else:
                continue
            if value is not None:
                yield name, value


def static_values(evaluator: Evaluator, callee: Applied, operation: s.Call) -> frozenset[int]:
    """The values that a call passes for static parameters, which are not arrays."""
    mapped = certain(callee.arguments.positional[0]) if callee.arguments.positional else None
    if mapped is None:
        return frozenset()
    formals = evaluator.project.function(mapped.ref).formals if isinstance(mapped, FunctionValue) else ()
    bound = callee.receiver is not None or (isinstance(mapped, FunctionValue) and mapped.receiver is not None)
    names = [formal.name for formal in formals[bound:]]
    return frozenset(value for _, value in static_arguments(evaluator, callee, operation, names))


def static_places(evaluator: Evaluator, callee: Applied) -> frozenset[int]:
    """The positions of the static parameters of a jit or map, as far as they are given by number."""
    given = (each for parameter in _PARAMETERS for each in _constants(evaluator.argument(callee, parameter)))
    return frozenset(each for each in given if type(each) is int)


def _constants(values: Values | None) -> Iterator[object]:
    for value in values or ():
        if isinstance(value, Constant):
            yield value.value
        elif isinstance(value, Collection):
            for element in value.elements:
                yield from _constants(element)


def _passed(operation: s.Call, formals: Sequence[str], name: str) -> int | None:
    for argument in operation.arguments:
        if argument.keyword == name:
            return argument.value
    given = by_position(operation)
    position = formals.index(name) if name in formals else len(given)
    return given[position] if position < len(given) else None
