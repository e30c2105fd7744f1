"""Loops over objects of which some processes have more: what the additional objects do, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Instance, Values, certain
from spmdlint.analysis.variance.origins import Reason
from spmdlint.program import summary as s

_PUTTING = frozenset(("append", "add", "insert", "appendleft"))


def are_silent(effects: Effects, frame: Frame, element: int, reason: Reason, calls: Sequence[ParallelCall]) -> bool:
    """Whether the objects that only some processes have make none of the calls that a loop makes through them.

    ``element``: the element of the loop.
    """
    added = _added(effects, reason)
    if not added or not all(isinstance(value, Instance) for value in added):
        return False
    code = frame.code
    for number in sorted({call.path[0].number for call in calls}):
        operation = code.operations[number]
        if not isinstance(operation, s.Call):
            return False
        called = code.operations[operation.function]
        owner, name = operation.function, "__call__"
        if isinstance(called, s.Attribute):
            owner, name = called.base, called.name
        if code.root_of(owner) != element:
            return False
        for value in added:
            bound = certain(effects.ev.objects.attribute(value, name)) if isinstance(value, Instance) else None
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
        filling = where.code.filling.get(first[0], ())
        puts = (_put(where, n) for n in filling if n == step.site.number or block_of[n] not in made)
        given = [value for put in puts if put is not None for value in put[1]]
        return frozenset().union(*(effects.ev.value(where, value) for value in given))
    return frozenset()


def _put(where: Frame, number: int) -> tuple[str, tuple[int, ...]] | None:
    """The name of the collection that an operation puts something into, and the values that it puts."""
    operations = where.code.operations
    put = operations[number]
    if isinstance(put, s.Binary) and put.inplace:  # `name += [...]`
        base, added = operations[put.left], operations[put.right]
        values = added.elements if isinstance(added, s.Display) and not added.starred else ()
    elif isinstance(put, s.Call):
        method = operations[put.function]
        if not isinstance(method, s.Attribute) or method.name not in _PUTTING or not put.arguments:
            return None
        base, values = operations[method.base], (put.arguments[-1].value,)
    else:
        return None
    return (base.name, values) if isinstance(base, s.Load) and values else None
