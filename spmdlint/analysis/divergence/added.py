"""Loops over objects of which some processes have more: what the additional objects do, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Instance, Values, certain
from spmdlint.analysis.variance.origins import Reason
from spmdlint.program import summary as s

_PUTTING = frozenset(("append", "add", "insert", "appendleft"))


def are_silent(effects: Effects, frame: Frame, element: int, reason: Reason, calls: Sequence[ParallelCall]) -> bool:
    """Whether the objects that only some processes have make none of the calls that a loop makes by their methods.

    ``element``: the element of the loop.
    """
    added = _added(effects, reason)
    if not added or not all(isinstance(value, Instance) for value in added):
        return False
    code = frame.code
    for number in sorted({call.path[0].number for call in calls}):
        operation = code.operations[number]
        method = code.operations[operation.function] if isinstance(operation, s.Call) else None
        if not isinstance(operation, s.Call) or not isinstance(method, s.Attribute):
            return False
        if code.root_of(method.base) != element:
            return False
        for value in added:
            bound = certain(effects.ev.objects.attribute(value, method.name)) if isinstance(value, Instance) else None
            if not isinstance(bound, FunctionValue) or any(effects.of_callee(frame, number, operation, bound)):
                return False
    return True


def _added(effects: Effects, reason: Reason) -> Values:
    """The values that only some processes put into the collection of a reason: all that a branch puts there."""
    for step in reason.chain():
        where = effects.ev.free_frame(step.site.ref)
        first = _put(where, step.site.number)
        if first is None:
            continue
        block_of = where.code.function.block_of
        made = {block_of[store] for store in where.code.function.stores.get(first[0], ())}
        puts = (_put(where, number) for number in where.code.filling.get(first[0], ()) if block_of[number] not in made)
        return frozenset().union(*(effects.ev.value(where, put[1]) for put in puts if put is not None))
    return frozenset()


def _put(where: Frame, number: int) -> tuple[str, int] | None:
    """The name of the collection that a call puts something into, and the value that it puts."""
    call = where.code.operations[number]
    method = where.code.operations[call.function] if isinstance(call, s.Call) else None
    base = where.code.operations[method.base] if isinstance(method, s.Attribute) else None
    if not isinstance(call, s.Call) or not isinstance(method, s.Attribute) or not isinstance(base, s.Load):
        return None
    return (base.name, call.arguments[-1].value) if method.name in _PUTTING and call.arguments else None
