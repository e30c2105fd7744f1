"""Which value a call passes for a parameter of the function that it enters, here or where a partial was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spmdlint.analysis.callgraph.reach import CallEdge, Reach
from spmdlint.analysis.evaluation.bindings import passed
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
    given = passed(call, name, tuple(positional[any(map(_binds_first, callees)) :]))
    return (caller, given) if given is not None else None


def arguments_for(
    ev: Evaluator, reach: Reach, entered: Frame, name: str, calls: Iterable[CallEdge]
) -> Iterator[tuple[Frame, int, tuple[Frame, int]]]:
    """The arguments that calls pass for a parameter, each with the call, and those that are bound before a map or jit.

    ``jax.jit(partial(step, size=n))``: what the mapped function is called with are arrays, but ``size`` is ``n``.
    """
    for edge in calls:
        call = edge.caller.code.operations[edge.number]
        given = argument_for(ev, entered, name, call, edge.caller) if isinstance(call, s.Call) else None
        if given is not None:
            yield edge.caller, edge.number, given
    for edge in reach.callers.get(entered.ref, ()):
        call = edge.caller.code.operations[edge.number]
        if edge.target.way == "call" or not isinstance(call, s.Call):
            continue
        if not isinstance(certain(ev.value(edge.caller, call.function)), External):
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
    return isinstance(callee, (ClassValue, Instance)) or (
        isinstance(callee, FunctionValue) and callee.receiver is not None
    )


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
