"""Arrays built in an order of this process's own and passed to a call in which all processes combine them.

``process_allgather(np.array([metrics[name] for name in names]))``: each row means something else on each process.
Dictionaries themselves are not such arrays, since JAX sorts their keys. What a traced program stacks or sends counts as
well.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, certain
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_DEPTH = 4


class GatheredOrder(Struct, frozen=True):
    """A call that combines the processes' values, and an argument whose elements are in an order of this process.

    ``composes``: the call composes a program from its arguments instead.
    """

    call: Site
    argument: Site
    name: str
    reason: Reason
    composes: bool = False


def gathered_orders(evaluator: Evaluator, reach: Reach, effects: Effects, order: Origins) -> Iterator[GatheredOrder]:
    """Every such argument, function by function."""
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        if ref in reach.traced:
            yield from _traced(evaluator, frame, order)
        if ref not in reach.host:
            continue
        for number, operation in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            composed = _composed(evaluator, frame, operation)
            for argument in operation.arguments if composed is not None else ():
                reason = order.of(frame, argument.value)
                if composed is not None and reason is not None:
                    yield GatheredOrder(Site(ref, number), Site(ref, argument.value), composed, reason, composes=True)
                    break
            if not effects.agrees(frame, operation):
                yield from _listed_for_program(evaluator, frame, number, operation, order)
                continue
            for argument in operation.arguments:
                if _stacked(order, frame, argument.value, _DEPTH):
                    reason = order.of(frame, argument.value)
                    if reason is not None:
                        name = next(call.name for call in effects.of_call(frame, number, operation))
                        yield GatheredOrder(Site(ref, number), Site(ref, argument.value), name, reason)


def _listed_for_program(
    evaluator: Evaluator, frame: Frame, number: int, operation: s.Call, order: Origins
) -> Iterator[GatheredOrder]:
    """Arrays passed to a compiled function in the order of hashes or ids: each may take another's place."""
    callee = certain(evaluator.value(frame, operation.function))
    known = evaluator.knowledge.get(callee.name) if isinstance(callee, Applied) else None
    if known is None or known.kind not in ("jit", "map"):
        return
    for argument in operation.arguments:
        reason = order.of(frame, argument.value)
        if reason is not None and reason.kind == "hash":
            name = f"a function under {known.name}"
            yield GatheredOrder(Site(frame.ref, number), Site(frame.ref, argument.value), name, reason)


def _traced(evaluator: Evaluator, frame: Frame, order: Origins) -> Iterator[GatheredOrder]:
    """Arrays that a program stacks or sends in such an order: each process compiles a different program."""
    for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
        for callee in evaluator.value(frame, call.function) if call.arguments else ():
            known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is None or not (known.kind == "collective" or (known.stacks and known.name.startswith("jax."))):
                continue
            given = call.arguments[0].value
            reason = order.of(frame, given) if _picked(evaluator, frame, given, _DEPTH) else None
            if reason is not None:
                yield GatheredOrder(Site(frame.ref, number), Site(frame.ref, given), known.name, reason)


def _picked(evaluator: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether it is a list with another container's entry for each name: ``[grads[name] for name in names]``.

    The elements of a set themselves may well be numbers, and sets of numbers have one order.
    """
    operations = frame.code.operations
    operation = operations[number]
    if isinstance(operation, s.Load) and depth:
        stores = evaluator.reaching(frame, number, operation.name)
        return bool(stores) and all(_picked(evaluator, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Store):
        return _picked(evaluator, frame, operation.value, depth)
    if not isinstance(operation, s.Collected) or operation.kind not in ("list", "generator"):
        return False
    return any(isinstance(operations[part], s.Subscript) for part in parts(evaluator, frame, operation.element, _DEPTH))


def _composed(evaluator: Evaluator, frame: Frame, operation: s.Call) -> str | None:
    """The library function called here that composes a program from its arguments; None if it does not."""
    for callee in evaluator.value(frame, operation.function) if operation.arguments else ():
        known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is not None and known.composes:
            return known.name
    return None


def _stacked(order: Origins, frame: Frame, number: int, depth: int) -> bool:
    """Whether a value is a list or an array that is built element by element, here or in a function that returns it."""
    evaluator = order.ev
    operation = frame.code.operations[number]
    if isinstance(operation, s.Collected):
        return operation.kind == "list"
    if isinstance(operation, s.Store):
        return _stacked(order, frame, operation.value, depth)
    if isinstance(operation, s.Binary):
        return operation.operator == "+" and any(
            _stacked(order, frame, side, depth) for side in (operation.left, operation.right)
        )
    if isinstance(operation, s.Load) and depth:
        stores = evaluator.reaching(frame, number, operation.name)
        return bool(stores) and all(_stacked(order, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Call):
        callees = order.callees(frame, operation)
        inside = [evaluator.free_frame(callee.ref) for callee in callees if isinstance(callee, FunctionValue)]
        if inside and depth:
            given = [(each, made.value) for each in inside for _, made in each.code.returns]
            ends = [value is not None and _stacked(order, each, value, depth - 1) for each, value in given]
            return bool(ends) and all(ends)
        known = [evaluator.knowledge.get(callee.name) for callee in callees if isinstance(callee, External)]
        return any(entry is not None and entry.stacks for entry in known)
    return False
