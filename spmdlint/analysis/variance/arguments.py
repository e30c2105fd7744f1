"""Which value a call passes for a parameter of the function that it enters, here or where a partial was made."""

from __future__ import annotations

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, ClassValue, Frame, FunctionValue, Instance, Value, certain
from spmdlint.program import summary as s


def argument_for(ev: Evaluator, entered: Frame, name: str, call: s.Call, caller: Frame) -> tuple[Frame, int] | None:
    """The frame and the operation of the argument for a parameter of ``entered``; None if the call passes none.

    Arguments that a `functools.partial` has bound are passed where the partial is made, not where it is called.
    """
    positional = [f.name for f in entered.code.function.formals if f.kind in ("positional-only", "standard")]
    callees = ev.value(caller, call.function)
    partial = certain(callees)
    if isinstance(partial, Applied) and _is_partial(ev, partial):
        return _through_partial(ev, partial, name, positional, call, caller)
    given = passed(call, name, tuple(positional[any(map(_binds_first, callees)) :]))
    return (caller, given) if given is not None else None


def _binds_first(callee: Value) -> bool:
    """Whether a callee passes its first argument itself: a class its new object, a bound method its receiver."""
    return isinstance(callee, (ClassValue, Instance)) or (
        isinstance(callee, FunctionValue) and callee.receiver is not None
    )


def _is_partial(ev: Evaluator, applied: Applied) -> bool:
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
    if given is not None:
        return caller, given
    made = ev.free_frame(partial.site.ref)
    operation = made.code.operations[partial.site.number]
    given = passed(operation, name, ("", *free)) if isinstance(operation, s.Call) else None
    return (made, given) if given is not None else None
