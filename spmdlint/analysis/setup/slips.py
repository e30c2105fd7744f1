"""Slips at which JAX raises: a float in a shape, a negative dimension, an array method used like an attribute."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    Collection,
    External,
    Frame,
    Site,
    Value,
    certain,
    constant,
)
from spmdlint.knowledge.slips import SlipTable
from spmdlint.program import summary as s
from spmdlint.releases import Version

_DEPTH = 6


class FloatShape(Struct, frozen=True):
    """A number in a shape that is certainly a float; ``made`` is where it becomes one, ``division`` if by ``/``."""

    site: Site
    made: Site
    taker: str
    division: bool


class NegativeDimension(Struct, frozen=True):
    """A dimension that is counted from the end, for a collective that could not do so before JAX ``since``."""

    site: Site
    function: str
    parameter: str
    dimension: int
    since: str


class UncalledMethod(Struct, frozen=True):
    """A method of an array that is used as if it were an attribute."""

    site: Site
    name: str


class Slips:
    """Examines every operation of the program."""

    def __init__(self, evaluator: Evaluator, table: SlipTable) -> None:
        self.ev = evaluator
        self.table = table

    def float_shapes(self) -> Iterator[FloatShape]:
        """Shapes with a float in them."""
        for frame, number, operation in self._calls():
            taker, given = self._shape(frame, operation)
            for element in given:
                made = self._float(frame, element, _DEPTH)
                if made is not None and not self._meant(frame, number):
                    division = isinstance(self.ev.function(frame).operations[made], s.Binary)
                    yield FloatShape(Site(frame.ref, element), Site(frame.ref, made), taker, division)

    def division(self, site: Site) -> tuple[int, int] | None:
        """The offsets between the operands of a division, if only the operator, possibly with spaces, is between."""
        function = self.ev.project.function(site.ref)
        operation = function.operations[site.number]
        if not isinstance(operation, s.Binary) or operation.operator != "/" or operation.inplace:
            return None
        start, end = function.spans[operation.left][1], function.spans[operation.right][0]
        return (start, end) if end - start in (len("/"), len(" / ")) else None

    def uncalled(self) -> Iterator[UncalledMethod]:
        """Methods of arrays that are used without calling them."""
        for frame, number, operation in self._calls():
            callee = certain(self.ev.value(frame, operation.function))
            if not isinstance(callee, External) or callee.name not in self.table.users:
                continue
            for argument in operation.arguments:
                attribute = self.ev.function(frame).operations[argument.value]
                if not isinstance(attribute, s.Attribute) or attribute.name not in self.table.methods:
                    continue
                base = certain(self.ev.value(frame, attribute.base))
                if base is not None and self._is_array(base) and not self._meant(frame, number):
                    yield UncalledMethod(Site(frame.ref, argument.value), attribute.name)

    def negative_dimensions(self, version: Version | None) -> Iterator[NegativeDimension]:
        """Negative numbers for dimensions that do not take them; ``version`` is the project's, None if unknown."""
        since = self.table.counted_since
        if version is not None and version >= tuple(map(int, since.split("."))):
            return
        for frame, number, call in self._calls():
            callee = certain(self.ev.value(frame, call.function))
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            for parameter in self.table.dimensions.get(known.name, ()) if known is not None else ():
                assert known is not None
                value = passed(call, parameter, known.positional)
                given = constant(self.ev.value(frame, value)) if value is not None else None
                if value is None or given is None or type(given.value) is not int or given.value >= 0:
                    continue
                if not self._meant(frame, number):
                    yield NegativeDimension(Site(frame.ref, value), known.name, parameter, given.value, since)

    def _calls(self) -> Iterator[tuple[Frame, int, s.Call]]:
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                yield frame, number, operation

    def _meant(self, frame: Frame, number: int) -> bool:
        return expects_failure(self.ev, frame, number) or handles(self.ev, frame, number, "TypeError")

    # -- shapes

    def _shape(self, frame: Frame, call: s.Call) -> tuple[str, list[int]]:
        """The numbers of the shape that a call is passed, and the name of the callee."""
        operations = self.ev.function(frame).operations
        positional = [a.value for a in call.arguments if a.keyword is None and not a.star]
        method = operations[call.function]
        callee = certain(self.ev.value(frame, call.function))
        if isinstance(callee, External):
            position = self.table.shapes.get(callee.name)
            shape = next((a.value for a in call.arguments if a.keyword == "shape"), None)
            if position is None:
                return "", []
            if shape is None and not any(a.star for a in call.arguments) and position < len(positional):
                shape = positional[position]
            return callee.name, self._numbers(frame, shape) if shape is not None else []
        if isinstance(method, s.Attribute) and method.name in self.table.reshape:
            base = certain(self.ev.value(frame, method.base))
            if base is not None and self._is_array(base):
                return f".{method.name}()", [n for given in positional for n in self._numbers(frame, given)]
        return "", []

    def _numbers(self, frame: Frame, number: int) -> list[int]:
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Display) and operation.kind in ("tuple", "list"):
            return list(operation.elements)
        return [number] if not isinstance(certain(self.ev.value(frame, number)), Collection) else []

    def _float(self, frame: Frame, number: int, depth: int) -> int | None:
        """The operation where a number certainly becomes a float; None if there is none."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        if depth == 0:
            return None
        if isinstance(operation, s.Const):
            return number if type(operation.value) is float else None
        if isinstance(operation, s.Binary):
            if operation.operator == "/":
                return number
            if operation.operator in ("+", "-", "*"):
                sides = [self._float(frame, n, depth - 1) for n in (operation.left, operation.right)]
                return next((side for side in sides if side is not None), None)
        if isinstance(operation, s.Store):
            return self._float(frame, operation.value, depth - 1)
        if isinstance(operation, s.Load) and function.binds(operation.name):
            stores = self.ev.reaching(frame, number, operation.name)
            found = [self._float(frame, store, depth - 1) for store in sorted(stores)]
            return found[0] if found and None not in found else None
        return None

    def _is_array(self, value: Value) -> bool:
        if isinstance(value, Applied):
            return value.name in self.table.placing or self.ev.knowledge.gives_array(value.name)
        if not isinstance(value, Called) or not isinstance(value.function, Applied):
            return False
        known = self.ev.knowledge.get(value.function.name)
        return known is not None and known.kind in ("map", "jit")
