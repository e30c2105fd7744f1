"""Which value a call passes for a parameter of the function that it enters, here or where a partial was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spmdlint.analysis.callgraph.reach import CallEdge, Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.elements import elements, entries
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Value,
    certain,
)
from spmdlint.program import summary as s


def argument_for(ev: Evaluator, entered: Frame, name: str, call: s.Call, caller: Frame) -> tuple[Frame, int] | None:
    """The frame and the operation of the argument for a parameter of ``entered``; None if the call passes none.

    Arguments that a `functools.partial` has bound are passed where the partial is made, not where it is called.
    """
    positional = [f.name for f in entered.code.function.formals if f.kind in ("positional-only", "standard")]
    callees = ev.value(caller, call.function)
    partial = certain(callees)
    if isinstance(partial, Applied) and is_partial(ev, partial):
        return _through_partial(ev, partial, name, positional, call, caller)
    free = positional[any(map(_binds_first, callees)) :]
    given = passed(call, name, tuple(free))
    return (caller, given) if given is not None else _spread(ev, caller, call, name, free)


def _spread(ev: Evaluator, caller: Frame, call: s.Call, name: str, positional: list[str]) -> tuple[Frame, int] | None:
    """The argument in a tuple or dictionary that the call spreads, where that is written out."""
    places: list[tuple[Frame, int]] = []
    for star, value, position in starred(call, name, positional):
        places += elements(ev, caller, value, position) if star == "*" else entries(ev, caller, value, name)
    return places[0] if len(places) == 1 else None


def starred(call: s.Call, name: str, positional: list[str]) -> Iterator[tuple[str, int, int]]:
    """The starred arguments that may have the argument for a parameter: the star, the value, and which of its items."""
    position = positional.index(name) if name in positional else -1
    for argument in call.arguments:
        if argument.star == "**":
            yield "**", argument.value, 0
        elif argument.star == "*":
            if position >= 0:
                yield "*", argument.value, position
            position = -1  # how many it has is not known
        elif argument.keyword is None:
            position -= 1


def passed_on(ev: Evaluator, entered: Frame, name: str, call: s.Call, caller: Frame) -> Iterator[tuple[str, int]]:
    """How a call passes its function's own ``*args`` or ``**kwargs`` on: which star, and which item is the argument."""
    positional = [f.name for f in entered.code.function.formals if f.kind in ("positional-only", "standard")]
    free = positional[any(map(_binds_first, ev.value(caller, call.function))) :]
    for star, value, position in starred(call, name, free):
        root = caller.code.operations[caller.code.root_of(value)]
        if isinstance(root, s.Parameter) and star == kind_of(caller, root.name):
            yield star, position


def kind_of(frame: Frame, name: str) -> str | None:
    """The kind of a parameter; None if the function has none of this name."""
    return next((formal.kind for formal in frame.code.function.formals if formal.name == name), None)


def in_rest(ev: Evaluator, entered: Frame, star: str, item: object, call: s.Call, caller: Frame) -> int | None:
    """What a call passes as an item of the ``*args`` of a function, by position, or of its ``**kwargs``, by name."""
    if star == "**":
        return next((each.value for each in _by_name(entered, call) if each.keyword == item), None)
    taken, given = _by_position(ev, entered, call, caller)
    place = taken + item if isinstance(item, int) and item >= 0 else -1  # before the first: the receiver
    if not 0 <= place < len(given) or any(argument.star for argument in given[: place + 1]):
        return None
    return given[place].value


def rest(ev: Evaluator, entered: Frame, star: str, call: s.Call, caller: Frame) -> list[int]:
    """All that a call passes in the ``*args`` or ``**kwargs`` of a function."""
    if star == "**":
        return [argument.value for argument in _by_name(entered, call)]
    taken, given = _by_position(ev, entered, call, caller)
    return [argument.value for argument in given[max(taken, 0) :] if not argument.star]


def _by_name(entered: Frame, call: s.Call) -> list[s.Argument]:
    """The arguments that a function takes in its ``**kwargs``."""
    own = {formal.name for formal in entered.code.function.formals if formal.kind in ("standard", "keyword-only")}
    return [argument for argument in call.arguments if argument.keyword and argument.keyword not in own]


def _by_position(ev: Evaluator, entered: Frame, call: s.Call, caller: Frame) -> tuple[int, list[s.Argument]]:
    """How many of the arguments by position parameters of their own take, and these arguments."""
    bound = any(map(_binds_first, ev.value(caller, call.function)))
    taken = sum(formal.kind in ("positional-only", "standard") for formal in entered.code.function.formals) - bound
    return taken, [argument for argument in call.arguments if argument.keyword is None]


def arguments_for(
    ev: Evaluator, reach: Reach, entered: Frame, name: str, calls: Iterable[CallEdge]
) -> Iterator[tuple[Frame, int, tuple[Frame, int] | None]]:
    """The arguments that calls pass for a parameter, each with the call, and those that are bound before a map or jit.

    None stands for the argument of a call that passes none.
    ``jax.jit(partial(step, size=n))``: what the mapped function is called with are arrays, but ``size`` is ``n``.
    """
    for edge in calls:
        call = edge.caller.code.operations[edge.number]
        if isinstance(call, s.Call):
            yield edge.caller, edge.number, argument_for(ev, entered, name, call, edge.caller)
    for edge in reach.callers.get(entered.ref, ()):
        call = edge.caller.code.operations[edge.number]
        if edge.target.way == "call" or not isinstance(call, s.Call):
            continue
        if not isinstance(ev.callee(edge.caller, call), External):
            continue  # a call of what a map returned
        for argument in call.arguments:
            partial = certain(ev.value(edge.caller, argument.value))
            if isinstance(partial, Applied) and is_partial(ev, partial):
                given = _bound(ev, partial, entered, name)
                if given is not None:
                    yield edge.caller, edge.number, given


def _bound(ev: Evaluator, partial: Applied, entered: Frame, name: str) -> tuple[Frame, int] | None:
    """What a partial of a function binds to one of its parameters, where it is made."""
    first = certain(partial.arguments.positional[0]) if partial.arguments.positional else None
    if not isinstance(first, FunctionValue) or first.ref != entered.ref:
        return None
    positional = [f.name for f in entered.code.function.formals if f.kind in ("positional-only", "standard")]
    return _where_made(ev, partial, name, positional[_binds_first(first) :])


def _where_made(ev: Evaluator, partial: Applied, name: str, free: list[str]) -> tuple[Frame, int] | None:
    made = ev.free_frame(partial.site.ref)
    operation = made.code.operations[partial.site.number]
    given = passed(operation, name, ("", *free)) if isinstance(operation, s.Call) else None
    return (made, given) if given is not None else None


def _binds_first(callee: Value) -> bool:
    """Whether a callee passes its first argument itself: a class its new object, a bound method its receiver."""
    bound = isinstance(callee, (FunctionValue, Applied)) and callee.receiver is not None
    return bound or isinstance(callee, (ClassValue, Instance))


def is_partial(ev: Evaluator, applied: Applied) -> bool:
    """Whether this is a function with some arguments bound."""
    known = ev.knowledge.get(applied.name)
    return known is not None and known.kind == "currying"


def _through_partial(
    ev: Evaluator, partial: Applied, name: str, positional: list[str], call: s.Call, caller: Frame
) -> tuple[Frame, int] | None:
    first = certain(partial.arguments.positional[0]) if partial.arguments.positional else None
    if not isinstance(first, (FunctionValue, ClassValue)):
        return None  # a partial of a partial, or of a map: its positions are not those of the function
    free = positional[_binds_first(first) :]
    bound = len(partial.arguments.positional) - 1
    given = passed(call, name, tuple(free[bound:]))
    return (caller, given) if given is not None else _where_made(ev, partial, name, free)
