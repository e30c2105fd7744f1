"""What an array has a row for each of: the count that is its leading size, carried as every other fact is.

`jnp.zeros((jax.device_count(), 3))` has one row for each device of all processes; the batches of a loader that was told
to make them `4 * jax.device_count()` long have rows for all of these devices, too.
"""

from __future__ import annotations

from collections.abc import Callable

from spmdlint.analysis.evaluation.bindings import by_position, passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through, through_method
from spmdlint.analysis.evaluation.values import Arguments, External, Frame, FunctionValue, Instance, certain, text
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.placement.kinds import copied
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.lastbatch import BATCHERS
from spmdlint.analysis.variance.origins import CARRIES, CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.windows import leading, resolved
from spmdlint.knowledge.units import Units
from spmdlint.program import summary as s

MULTIPLE = "multiple"
"""The kind of a reason for several rows on each of the devices of all processes. Others are units: one row for each."""


class Batches(Property):
    """The value is an iterable of arrays of a certain number of rows; ``size`` says why a number is one."""

    def __init__(self, size: Callable[[Frame, int], Reason | None]) -> None:
        self.size = size

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Item, s.Subscript)):
            found = of_element(origins, frame, operation)
            return found if found != CONTINUE else None
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        size = batch_size(origins.ev, frame, operation)
        if size is not None:
            return self._made(origins, frame, number, size)
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, (FunctionValue, Instance)):
                return CONTINUE
            if isinstance(callee, External):
                return origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "batches"))
        return origins.any_of(frame, through_method(origins.ev, frame, operation, "batches"))

    def _made(self, origins: Origins, frame: Frame, number: int, size: int) -> Reason | None:
        found = self.size(frame, size)
        return origins.step(frame, number, "batches of this size are made here", found)


class Rows(Property):
    """The value is an array, or a tree of arrays, with such a number of rows.

    Without ``leading``, which says what sizes count, it is whatever was made of a batch, also of another shape.
    """

    def __init__(self, table: Units, batches: Origins, leading: Leading | None = None) -> None:
        self.ev = batches.ev
        self.table = table
        self.leading = leading
        self.batches = batches

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Next):
            return self.batches.why(frame, operation.iterable)
        if isinstance(operation, (s.Item, s.Subscript)):
            found = of_element(origins, frame, operation)
            return found if found != CONTINUE else self._leaf(origins, frame, operation)
        if isinstance(operation, s.Display):
            return origins.any_of(frame, operation.elements) if operation.kind == "tuple" else None
        if isinstance(operation, s.DictDisplay):
            return origins.any_of(frame, operation.values)
        if isinstance(operation, s.Collected):
            return origins.why(frame, operation.element) if operation.kind == "dict" else None
        if isinstance(operation, s.Binary):
            return origins.any_of(frame, (operation.left, operation.right))
        if isinstance(operation, s.Call):
            return self._call(origins, frame, operation)
        return CONTINUE if isinstance(operation, CARRIES) else None

    def _leaf(self, origins: Origins, frame: Frame, operation: s.Item | s.Subscript) -> Reason | None:
        """The rows of an entry or a part of a batch, which has as many as its other entries."""
        if isinstance(operation, s.Item):
            return origins.why(frame, operation.value)
        return origins.why(frame, operation.base) if text(self.ev.value(frame, operation.index)) is not None else None

    def _call(self, origins: Origins, frame: Frame, call: s.Call) -> Answer:
        for callee in ordered(self.ev.value(frame, call.function)):
            if isinstance(callee, External):
                return self._library(origins, frame, call, callee.name)
            if isinstance(callee, (FunctionValue, Instance)):
                return CONTINUE
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and method.name == "reshape" and call.arguments:
            first = call.arguments[0]
            if self.leading is None:
                return origins.why(frame, method.base)
            return None if first.star or first.keyword else self._size(frame, first.value)
        return origins.any_of(frame, through_method(self.ev, frame, call, "batches"))

    def _library(self, origins: Origins, frame: Frame, call: s.Call, name: str) -> Reason | None:
        given = by_position(call)
        if any(argument.star for argument in call.arguments):
            return None
        if name in self.table.cutters:
            return None
        if name in self.table.takers and given:
            return self.batches.why(frame, given[0])
        if name in self.table.rows:
            position, keyword = self.table.rows[name]
            if keyword == "stop" and len(given) != 1:
                return None
            named = [argument.value for argument in call.arguments if argument.keyword == keyword]
            places = named or given[position : position + 1]
            return self._size(frame, places[0]) if places else None
        if name in self.table.patterned and len(given) == 2:
            return self._by_pattern(origins, frame, call, *given)
        if name in self.table.stacks and len(call.arguments) == 1:
            listed = self.leading.of_list(frame, given[0]) if given and self.leading is not None else None
            is_copy = not name.endswith("stack") and not self._is_list(frame, given)
            return listed or (origins.any_of(frame, given) if is_copy else None)
        if name in self.table.leaves and len(given) == 2:
            return self._mapped(origins, frame, *given)
        kept = through(self.ev.knowledge, name, call, "batches")
        if self.leading is None:
            return origins.any_of(frame, kept)
        known = self.ev.knowledge.get(name)
        ordered_alike = through(self.ev.knowledge, name, call, "order")  # a mean passes content, but no rows
        joins = known is not None and known.stacks
        return origins.any_of(frame, [each for each in kept if each in ordered_alike]) if not joins else None

    def _size(self, frame: Frame, shape: int) -> Reason | None:
        return self.leading.why(frame, shape) if self.leading is not None else None

    def _is_list(self, frame: Frame, given: list[int]) -> bool:
        """Whether an array is made from a list that is written out: its rows are the elements."""
        made = [frame.code.operations[resolved(self.ev, frame, each)] for each in given]
        return any(isinstance(each, (s.Display, s.Collected)) for each in made)

    def _by_pattern(self, origins: Origins, frame: Frame, call: s.Call, array: int, pattern: int) -> Reason | None:
        """The rows of ``repeat(x, "b d -> n b d", n=count)``: a new first axis, or the array's own."""
        before, _, after = (text(self.ev.value(frame, pattern)) or "").partition("->")
        first = after.split()[:1]
        size = next((each.value for each in call.arguments if [each.keyword] == first), None)
        if size is not None:
            return self._size(frame, size)
        return origins.why(frame, array) if first and first == before.split()[:1] else None

    def _mapped(self, origins: Origins, frame: Frame, function: int, tree: int) -> Reason | None:
        """The rows of what a function makes of each leaf."""
        callee = certain(self.ev.value(frame, function))
        if isinstance(callee, External):
            known = self.ev.knowledge.transfer(callee.name)
            keeps = known is not None and known.passes is not None and {"batches", "order"} <= set(known.passes)
            return origins.why(frame, tree) if keeps else None
        if not isinstance(callee, FunctionValue):
            return None
        depth = callee.outer.depth + 1 if callee.outer is not None else 1
        inner = self.ev.entered_frame(callee, Arguments(), depth, arrays=True)
        found = origins.of_returns(inner) if inner is not None else None
        return found or (origins.why(frame, tree) if self.leading is None else None)


class Leading:
    """The unit of a size, or of the first one of a shape."""

    def __init__(self, quantities: Quantities, whole: Origins) -> None:
        self.ev = quantities.ev
        self.quantities = quantities
        self.whole = whole

    def why(self, frame: Frame, shape: int) -> Reason | None:
        """Why so many rows are one for each of a unit, or several on each device of all processes."""
        shape = leading(self.ev, frame, shape)
        found = self.quantities.quantity(frame, shape)
        if found is not None:
            return Reason(found.site, found.text, found.unit) if found.role == "count" else None
        several = self.whole.why(frame, shape)
        return Reason(several.source.site, several.source.text, MULTIPLE) if several is not None else None

    def of_list(self, frame: Frame, number: int) -> Reason | None:
        """The same for the number of elements of ``[x] * count`` and ``[x for _ in range(count)]``."""
        operations = frame.code.operations
        operation = operations[resolved(self.ev, frame, number)]
        if isinstance(operation, s.Binary) and operation.operator == "*":
            for one, other in ((operation.left, operation.right), (operation.right, operation.left)):
                display = operations[one]
                if isinstance(display, s.Display) and len(display.elements) == 1 and not display.starred:
                    return self.why(frame, other)
        if isinstance(operation, s.Collected) and operation.kind == "list" and len(operation.loops) == 1:
            found = self.quantities.quantity(frame, operation.loops[0])
            return Reason(found.site, found.text, found.unit) if found is not None and found.role == "place" else None
        return None


def batch_size(evaluator: Evaluator, frame: Frame, call: s.Call) -> int | None:
    """How many examples a call puts into a batch; None if it makes no batches, or does not say."""
    callee = evaluator.callee(frame, call)
    if isinstance(callee, External):
        known = evaluator.knowledge.get(callee.name)
        return passed(call, known.batches, known.positional) if known is not None and known.batches else None
    method = frame.code.operations[call.function]
    if isinstance(callee, (FunctionValue, Instance)) or not isinstance(method, s.Attribute):
        return None
    return passed(call, "batch_size", ("batch_size",)) if method.name in BATCHERS else None


def own_part(evaluator: Evaluator, frame: Frame, call: s.Call) -> int | None:
    """What a call takes as this process's part of a global array; None if it takes none, or a copy for each device."""
    callee = evaluator.callee(frame, call)
    known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
    if known is None or known.local is None:
        return None
    layout = passed(call, known.laid_out or "", known.positional)
    layouts = evaluator.value(frame, layout) if layout is not None else ()
    return None if any(copied(evaluator, each) for each in layouts) else passed(call, known.local, known.positional)
