"""Lists and arrays that are put together element by element, where an element may be mistaken for another.

``process_allgather(np.array([metrics[name] for name in names]))``: each row means something else on each process.
Dictionaries themselves are not such arrays, since JAX sorts their keys.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.origins import Origins
from spmdlint.program import summary as s

_DEPTH = 4


def is_picked(evaluator: Evaluator, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
    """Whether it is a list with another container's entry for each name: ``[grads[name] for name in names]``.

    The elements of a set themselves may well be numbers, and sets of numbers have one order.
    """
    operations = frame.code.operations
    operation = operations[number]
    if isinstance(operation, s.Load) and depth:
        stores = evaluator.reaching(frame, number, operation.name)
        return bool(stores) and all(is_picked(evaluator, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Store):
        return is_picked(evaluator, frame, operation.value, depth)
    if not isinstance(operation, s.Collected) or operation.kind not in ("list", "generator"):
        return False
    return any(isinstance(operations[part], s.Subscript) for part in parts(evaluator, frame, operation.element, _DEPTH))


def is_stacked(order: Origins, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
    """Whether a value is a list or an array that is built element by element, here or in a function that returns it."""
    evaluator = order.ev
    operation = frame.code.operations[number]
    if isinstance(operation, s.Collected):
        return operation.kind == "list"
    if isinstance(operation, s.Store):
        return is_stacked(order, frame, operation.value, depth)
    if isinstance(operation, s.Binary):
        return operation.operator == "+" and any(
            is_stacked(order, frame, side, depth) for side in (operation.left, operation.right)
        )
    if isinstance(operation, s.Load) and depth:
        stores = evaluator.reaching(frame, number, operation.name)
        return bool(stores) and all(is_stacked(order, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Call):
        callees = order.callees(frame, operation)
        inside = [evaluator.free_frame(callee.ref) for callee in callees if isinstance(callee, FunctionValue)]
        if inside and depth:
            given = [(each, made.value) for each in inside for _, made in each.code.returns]
            ends = [value is not None and is_stacked(order, each, value, depth - 1) for each, value in given]
            return bool(ends) and all(ends)
        known = [evaluator.knowledge.get(callee.name) for callee in callees if isinstance(callee, External)]
        return any(entry is not None and entry.stacks for entry in known)
    return False
