"""Which parameter gets which argument, by Python's rules."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import ANYTHING, Arguments, Collection, DictionaryValue, Values, one
from spmdlint.program.summary import Call, Function


def bind(function: Function, arguments: Arguments) -> dict[str, Values]:
    """The arguments by parameter. A parameter that is not in it got none, or one behind a star."""
    bindings: dict[str, Values] = {}
    positional = [f for f in function.formals if f.kind in ("positional-only", "standard")]
    for formal, values in zip(positional, arguments.positional, strict=False):
        bindings[formal.name] = values
    by_name = {f.name for f in function.formals if f.kind in ("standard", "keyword-only")}
    extra: list[tuple[object, Values]] = []
    for name, values in arguments.keywords:
        if name in by_name:
            bindings[name] = values
        else:
            extra.append((name, values))
    for formal in function.formals:
        if formal.kind == "*":
            rest = arguments.positional[len(positional) :]
            bindings[formal.name] = ANYTHING if arguments.open else one(Collection("tuple", tuple(rest)))
        elif formal.kind == "**":
            bindings[formal.name] = ANYTHING if arguments.open else one(DictionaryValue(tuple(extra)))
    return bindings


def passed(call: Call, parameter: str, positional: tuple[str, ...]) -> int | None:
    """The value that a call passes for a parameter; None where it passes none, or behind a star."""
    for argument in call.arguments:
        if argument.keyword == parameter:
            return argument.value
    given = [argument for argument in call.arguments if argument.keyword is None]
    position = positional.index(parameter) if parameter in positional else len(given)
    if position < len(given) and not any(argument.star for argument in given[: position + 1]):
        return given[position].value
    return None
