"""Arrays built along an order that differs: stacked in it, their columns, and dimensions in traced code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Constant, External, Frame, FunctionValue, Site, constant
from spmdlint.analysis.order.sets import SetOrder
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.evened import ARRANGING
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
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


_FIRST = frozenset((None, 0))


class Columns(Property):
    """A dimension other than the first is in the order that ``order`` follows, in an array or in a tree of arrays."""

    def __init__(self, order: Origins) -> None:
        self.order = order

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Display, s.DictDisplay)):
            return origins.any_of(frame, operation.elements)
        if isinstance(operation, s.Collected):  # rows that are lists, or the arrays of a tree by their names
            listed = self.order.why(frame, operation.element) if operation.kind == "list" else None
            return listed or origins.why(frame, operation.element)
        if isinstance(operation, (s.Item, s.Subscript)):
            found = of_element(origins, frame, operation)
            base = operation.value if isinstance(operation, s.Item) else operation.base
            return origins.why(frame, base) if found == CONTINUE else found
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        return CONTINUE

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        for callee in ordered(origins.ev.value(frame, operation.function)):
            known = origins.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.stacks and operation.arguments:
                stacked = operation.arguments[0].value
                axis = passed(operation, "axis", known.positional)
                place = constant(origins.ev.value(frame, axis)) if axis is not None else Constant(known.along)
                across = place is not None and place.value not in _FIRST
                found = self.order.why(frame, stacked) if across else None
                found = found or origins.why(frame, stacked)
                return origins.step(frame, number, "an array is made of them", found)
        method = frame.code.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in ARRANGING:
            return origins.why(frame, method.base)
        return CONTINUE


class ListedDimensions(Struct, frozen=True):
    """A call, the argument that lists dimensions in set order, and why."""

    call: Site
    argument: Site
    name: str
    reason: Reason


class HeldOrder(SetOrder):
    """The value is a set, lists one in its order, or holds such a list: ``((left, right), ())``, ``"".join(names)``."""

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Display) and operation.kind != "set":
            return origins.any_of(frame, operation.elements)
        if isinstance(operation, s.FString):
            return origins.any_of(frame, operation.parts)
        if isinstance(operation, s.Collected) and operation.kind == "list":
            held = origins.why(frame, operation.element)
            if held is not None:
                return held
        if isinstance(operation, s.Call) and len(operation.arguments) == 1:
            method = frame.code.operations[operation.function]
            if isinstance(method, s.Attribute) and method.name == "join":
                return origins.why(frame, operation.arguments[0].value)
        return super().step(origins, frame, number, operation)


def listed_dimensions(
    evaluator: Evaluator, reach: Reach, held: Origins, table: Mapping[str, tuple[tuple[int, str], ...]]
) -> Iterator[ListedDimensions]:
    """Every such argument in traced code."""
    for ref in reach.calling(table):
        if ref not in reach.traced:
            continue
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            for callee in evaluator.value(frame, call.function):
                for position, keyword in table.get(callee.name, ()) if isinstance(callee, External) else ():
                    value = passed(call, keyword, (*("",) * position, keyword))
                    reason = held.why(frame, value) if value is not None else None
                    if value is not None and reason is not None:
                        name = callee.name if isinstance(callee, External) else ""
                        yield ListedDimensions(Site(ref, number), Site(ref, value), name, reason)
