"""Rows for this process's devices, such as keys and draws, and where an index among all devices chooses one of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.standard import COPIES
from spmdlint.analysis.evaluation.transfers import through
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    Value,
    certain,
    text,
)
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.origins import CARRIES, CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.reason import surest
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_READS: tuple[type[s.Operation], ...] = (s.Subscript, s.Call)
_OWN = "these are for the devices of this process"
ARRAYS = "jax.numpy."
_RESHAPE = "reshape"


class GlobalIndex(Struct, frozen=True):
    """The choice, the call that gives the index, and where the keys are split or the rows drawn."""

    site: Site
    place: Site
    split: Site


def global_indices(table: Typing, content: Origins, quantities: Quantities) -> Iterator[GlobalIndex]:
    """Every such choice."""
    ev, rows = content.ev, Origins(content.ev, content.calls, content.reach, OwnRows(table, quantities))
    for ref in ev.project.functions():
        frame = ev.free_frame(ref)
        live = ev.live_blocks(frame)
        for block, number, operation in frame.code.each(_READS):
            chosen = _chosen(ev, table, frame, operation) if block in live else None
            place = certain(ev.value(frame, chosen[1])) if chosen is not None else None
            if chosen is None or not isinstance(place, Applied) or table.rules.get(place.name) != "index":
                continue
            made = rows.of(frame, chosen[0])
            if made is not None:
                yield GlobalIndex(Site(ref, number), place.site, made.source.site)


def _chosen(ev: Evaluator, table: Typing, frame: Frame, operation: s.Operation) -> tuple[int, int] | None:
    """What an operation takes a part of, and the index of the part."""
    if isinstance(operation, s.Subscript):
        return operation.base, operation.index
    if isinstance(operation, s.Call) and operation.arguments[1:] and ev.may_call(frame, operation, *table.rows.pick):
        return operation.arguments[0].value, operation.arguments[1].value
    return None


class OwnRows(Property):
    """As many keys or rows as this process has devices, where they are split or drawn, or are given that shape."""

    def __init__(self, table: Typing, quantities: Quantities) -> None:
        self.table = table
        self.quantities = quantities

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Item) and operation.star:
            return self._but_one(origins.ev, frame, operation)
        if isinstance(operation, s.Subscript) and text(origins.ev.value(frame, operation.index)) is not None:
            return origins.of(frame, operation.base)
        if isinstance(operation, (s.Item, s.Subscript)):
            element = of_element(origins, frame, operation)
            return element if element != CONTINUE else None
        if isinstance(operation, (s.Display, s.DictDisplay)):
            return origins.any_of(frame, inputs(operation))
        if isinstance(operation, s.Attribute):
            owners = origins.ev.objects.by_name.owners(frame, operation.base, operation.name)
            made = (o.cls for o in ordered(owners) if isinstance(o, Instance))
            given = (each for cls in made for each in origins.reach.constructed.given(cls, operation.name))
            # Also in traced code, to which the record is passed.
            return surest(origins.of(where, value) for where, _, value in given) or CONTINUE
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        callee, method = origins.ev.callee(frame, operation), frame.code.operations[operation.function]
        if self._makes(origins.ev, frame, operation, callee):
            return Reason(Site(frame.ref, number), _OWN, "own")
        named = method.name if isinstance(method, s.Attribute) else ""
        if isinstance(callee, External) and not callee.name.startswith(ARRAYS):
            return origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "batches"))
        if isinstance(callee, (External, ClassValue)) or named in COPIES:
            return origins.any_of(frame, [argument.value for argument in operation.arguments])
        return CONTINUE if isinstance(callee, FunctionValue) else None

    def _makes(self, ev: Evaluator, frame: Frame, call: s.Call, callee: Value | None) -> bool:
        """Whether a call splits a key into so many, draws so many, or reshapes what it is given to so many."""
        given = [argument.value for argument in call.arguments if argument.keyword is None]
        method, name = frame.code.operations[call.function], callee.name if isinstance(callee, External) else ""
        shape = None
        if ev.may_call(frame, call, *self.table.rows.split_own):
            return True
        splits = ev.may_call(frame, call, *self.table.rows.split)
        if splits or self.table.exact.get(name) == "draw":
            shape = passed(call, size := "num" if splits else "shape", ("key", size))
        elif name == f"{ARRAYS}{_RESHAPE}" and len(given) > 1:
            shape = given[1]
        elif isinstance(method, s.Attribute) and method.name == _RESHAPE and given:
            shape = given[0]
        return shape is not None and self._leads_with_own(frame, shape)

    def _leads_with_own(self, frame: Frame, shape: int) -> bool:
        """Whether a number, or the first dimension of a shape, is the number of this process's devices."""
        operation = frame.code.operations[resolved(self.quantities.ev, frame, shape)]
        if isinstance(operation, s.Binary) and operation.operator == "+":
            return self._leads_with_own(frame, operation.left)
        first = operation.elements[0] if isinstance(operation, s.Display) and operation.elements else shape
        count = self.quantities.of(frame, first)
        return count is not None and (count.role, count.unit) == ("count", "local")

    def _but_one(self, ev: Evaluator, frame: Frame, rest: s.Item) -> Reason | None:
        """The keys but those for the host: ``key, *keys = split(key, own + 1)``."""
        split = resolved(ev, frame, rest.value)
        call = frame.code.operations[split]
        count = call.arguments[1:2] if isinstance(call, s.Call) else ()
        splits = bool(count) and ev.may_call(frame, call, *self.table.rows.split)
        more = frame.code.operations[count[0].value] if splits else None
        if not isinstance(more, s.Binary) or certain(ev.value(frame, more.right)) != Constant(rest.index):
            return None
        return Reason(Site(frame.ref, split), _OWN, "own") if self._leads_with_own(frame, count[0].value) else None
