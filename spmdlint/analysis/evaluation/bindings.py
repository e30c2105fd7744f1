"""Binds the arguments of a call to parameters, by Python's rules."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import ANYTHING, Arguments, Collection, DictionaryValue, Values, one
from spmdlint.program.summary import Call, Function

_BY_POSITION = ("positional-only", "standard")
_BY_NAME = ("standard", "keyword-only")


def bind(function: Function, arguments: Arguments) -> dict[str, Values]:
    """The arguments by parameter. A parameter is missing if it got no argument, or one from a starred argument."""
    formals = function.formals
    bindings: dict[str, Values] = {}
    positional = [f.name for f in formals if f.kind in _BY_POSITION]
    bindings.update(zip(positional, arguments.positional, strict=False))
    extra: list[tuple[object, Values]] = []
    if arguments.keywords:
        by_name = {f.name for f in formals if f.kind in _BY_NAME}
        for name, values in arguments.keywords:
            if name in by_name:
                bindings[name] = values
            else:
                extra.append((name, values))
    for formal in formals:
        if formal.kind == "*":
            rest = arguments.positional[len(positional) :]
            bindings[formal.name] = ANYTHING if arguments.open else one(Collection("tuple", tuple(rest)))
        elif formal.kind == "**":
            bindings[formal.name] = ANYTHING if arguments.open else one(DictionaryValue(tuple(extra)))
    return bindings


def passed_to(function: Function, call: Call, parameter: str, *, bound: bool) -> int | None:
    """The value that a call passes for a parameter of a function; ``bound``: its first parameter is the receiver."""
    return passed(call, parameter, tuple(formal.name for formal in function.formals[bound:]))


def passed(call: Call, parameter: str, positional: tuple[str, ...]) -> int | None:
    """The value that a call passes for a parameter; None if it passes none, or passes it in a starred argument."""
    for argument in call.arguments:
        if argument.keyword == parameter:
            return argument.value
    given = [argument for argument in call.arguments if argument.keyword is None]
    position = positional.index(parameter) if parameter in positional else len(given)
    if position < len(given) and not any(argument.star for argument in given[: position + 1]):
        return given[position].value
    return None


def by_position(call: Call) -> list[int]:
    """The values that a call passes by position; a starred argument counts as one."""
    return [argument.value for argument in call.arguments if argument.keyword is None]
