"""The units of counts and indices: processes, the devices of all processes, or the devices of this process.

As units are checked in physics: `jax.process_index()` is the index of a process, and has no meaning in a list of
devices. A value has a known unit or none. The devices of all, divided by those of one process, are the processes, and
so on; what is computed from two units otherwise has none.

A number that was divided by the number of processes is one process's portion. To share it among the devices, it must be
divided by the number of this process's devices; if it is divided by the number of all devices, the number of processes
is divided out twice.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    External,
    Frame,
    Instance,
    Site,
    certain,
    constant,
)
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.environment import variable_read
from spmdlint.analysis.variance.origins import CARRIES, CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.files import names
from spmdlint.knowledge.units import Unit, Units
from spmdlint.program import summary as s

Role = Literal["count", "place", "list"]
_DEPTH = 6
_COMPUTED: dict[tuple[Unit, str, Unit], Unit] = {
    ("device", "//", "local"): "process",
    ("device", "//", "process"): "local",
    ("local", "*", "process"): "device",
    ("process", "*", "local"): "device",
}
_KEEPS = frozenset(names("count_keepers"))
_SEQUENCES = names("sequences")


class Quantity(Struct, frozen=True):
    """A count, an index, or a list of what is counted; ``text`` is how the program writes it."""

    role: Role
    unit: Unit
    site: Site
    text: str


class Quantities:
    """Finds the unit of a value, if it has one."""

    def __init__(self, evaluator: Evaluator, table: Units) -> None:
        self.ev = evaluator
        self.table = table
        self.conditions = evaluator.once(Conditions)

    def quantity(self, frame: Frame, number: int, depth: int = _DEPTH) -> Quantity | None:
        """The quantity of a value; None if it has no unit."""
        if depth == 0:
            return None
        made = certain(self.ev.value(frame, number))
        if isinstance(made, Applied) and made.receiver is None:
            found = self._made(made)
            if found is not None:
                return found
        if self.conditions.is_index(frame, number):
            return Quantity("place", "process", Site(frame.ref, number), self._index_text(frame, number))
        number = resolved(self.ev, frame, number)
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Next):
            return self._of_round(frame, operation.iterable, depth)
        if isinstance(operation, s.Item) and operation.index == 0:
            return self._of_enumeration(frame, operation, depth)
        if isinstance(operation, s.Attribute) and operation.name in self.table.parts:
            return Quantity("list", "local", Site(frame.ref, number), f".{operation.name}")
        if isinstance(operation, s.Attribute):
            return self._kept(frame, operation, depth)
        if isinstance(operation, s.Call):
            return self._of_call(frame, operation, depth)
        if isinstance(operation, s.Binary):
            return self._computed(frame, number, operation, depth)
        return None

    def _computed(self, frame: Frame, number: int, operation: s.Binary, depth: int) -> Quantity | None:
        """The count that a product or a quotient of two others is."""
        sides = [self.quantity(frame, each, depth - 1) for each in (operation.left, operation.right)]
        counts = [each for each in sides if each is not None and each.role == "count"]
        unit = _COMPUTED.get((counts[0].unit, operation.operator, counts[1].unit)) if len(counts) == 2 else None
        if unit is None:
            return None
        one, other = (f"({each.text})" if " " in each.text else each.text for each in counts)
        return Quantity("count", unit, Site(frame.ref, number), f"{one} {operation.operator} {other}")

    def mapped_over_all(self, mapped: Applied) -> bool:
        """Whether a map over the devices of all processes takes from each a row for every device of its own."""
        known = self.ev.knowledge.get(mapped.name)
        return known is not None and known.by_hand and self.ev.argument(mapped, self.table.devices) is None

    def _index_text(self, frame: Frame, number: int) -> str:
        """How the program writes the process index: the variable that it reads, or the name that it gives it."""
        operations = frame.code.operations
        written = operations[number]
        if isinstance(written, (s.Load, s.Attribute)):
            return written.name
        if isinstance(written, s.Call) and variable_read(self.ev, frame, written) is None and written.arguments:
            written = operations[written.arguments[0].value]  # a conversion
        read = variable_read(self.ev, frame, written)
        variable = constant(self.ev.value(frame, read)) if read is not None else None
        return str(variable.value) if variable is not None else "the process index"

    def _kept(self, frame: Frame, field: s.Attribute, depth: int) -> Quantity | None:
        """The quantity in an object's field, if its class stores it in only one place."""
        owner = certain(self.ev.value(frame, field.base))
        objects = self.ev.objects
        if not isinstance(owner, Instance) or objects.patched.on(owner.cls, field.name):
            return None
        classes = [*objects.lineage(owner.cls), *objects.subclasses.get(owner.cls.ref, ())]
        stored = objects.only_stored(classes, field.name)
        return self.quantity(*stored, depth - 1) if stored is not None else None

    def _made(self, made: Applied) -> Quantity | None:
        if made.arguments.positional or made.arguments.keywords or made.arguments.open:
            return None  # only those of one platform, or of a different process
        roles: tuple[Role, Role, Role] = ("count", "place", "list")
        for role, table in zip(roles, (self.table.counts, self.table.places, self.table.lists), strict=True):
            if made.name in table:
                return Quantity(role, table[made.name], made.site, f"{made.name}()")
        return None

    def _of_call(self, frame: Frame, call: s.Call, depth: int) -> Quantity | None:
        """The quantity of ``len(devices)``, or of an array or list of devices."""
        if len(call.arguments) != 1 or call.arguments[0].star:
            return None
        argument = call.arguments[0].value
        for name in self._names(frame, call.function):
            inner = self.quantity(frame, argument, depth - 1)
            if inner is None or inner.role != "list":
                return None
            if elements().get(name) == "length":
                return Quantity("count", inner.unit, inner.site, f"len({inner.text})")
            if name in self.table.stacks or name in _SEQUENCES:
                return inner
        return None

    def _of_round(self, frame: Frame, iterable: int, depth: int) -> Quantity | None:
        """The indices that ``for i in range(count)`` goes through."""
        call = self.ev.function(frame).operations[resolved(self.ev, frame, iterable)]
        if isinstance(call, s.Call) and len(call.arguments) == 1 and self.ev.may_do(frame, call, "range"):
            count = self.quantity(frame, call.arguments[0].value, depth - 1)
            if count is not None and count.role == "count":
                return Quantity("place", count.unit, count.site, f"a number below {count.text}")
        return None

    def _of_enumeration(self, frame: Frame, item: s.Item, depth: int) -> Quantity | None:
        function = self.ev.function(frame)
        each = function.operations[item.value]
        call = function.operations[each.iterable] if isinstance(each, s.Next) else None
        if not isinstance(call, s.Call) or not self.ev.may_do(frame, call, "enumerate"):
            return None
        listed = self.quantity(frame, call.arguments[0].value, depth - 1) if len(call.arguments) == 1 else None
        if listed is None or listed.role != "list":
            return None
        return Quantity("place", listed.unit, listed.site, f"an index into {listed.text}")

    def _names(self, frame: Frame, callee: int) -> set[str]:
        return {v.name for v in self.ev.value(frame, callee) if isinstance(v, External)}

    def pieces(self, frame: Frame, number: int) -> Quantity | None:
        """What a list has one piece for each of: ``array_split(rows, jax.local_device_count())``."""
        number = resolved(self.ev, frame, number)
        operation = self.ev.function(frame).operations[number]
        if not isinstance(operation, s.Call) or any(argument.star for argument in operation.arguments):
            return None
        if self.table.cutters.isdisjoint(self._names(frame, operation.function)) or len(operation.arguments) < 2:
            return None
        count = self.quantity(frame, operation.arguments[1].value)
        if count is None or count.role != "count":
            return None
        return Quantity("list", count.unit, Site(frame.ref, number), f"a list of {count.text} pieces")


class Portion(Property):
    """The value is the portion of one of these ``units``, such as a process: it was divided by their number."""

    def __init__(self, quantities: Quantities, *units: Unit) -> None:
        self.quantities = quantities
        self.units = units

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Binary) and operation.operator in ("/", "//"):
            count = self.quantities.quantity(frame, operation.right)
            if count is not None and count.role == "count" and count.unit in self.units:
                return Reason(count.site, count.text, count.unit)
            return origins.why(frame, operation.left)
        if isinstance(operation, s.Call):
            return _kept(origins, frame, operation)
        return CONTINUE if isinstance(operation, CARRIES) else None


class Whole(Property):
    """The value counts the devices of all processes, once or several times."""

    def __init__(self, quantities: Quantities) -> None:
        self.quantities = quantities

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Call, s.Load)):
            count = self.quantities.quantity(frame, number)
            if count is not None and (count.role, count.unit) == ("count", "device"):
                return Reason(count.site, count.text, "whole")
        if isinstance(operation, s.Binary) and operation.operator == "*":
            return origins.any_of(frame, (operation.left, operation.right))
        if isinstance(operation, s.Call):
            return _kept(origins, frame, operation)
        return CONTINUE if isinstance(operation, CARRIES) else None


def _kept(origins: Origins, frame: Frame, operation: s.Call) -> Answer:
    """Why a call that returns an argument, perhaps rounded, has the property; the project's functions are followed."""
    for callee in ordered(origins.ev.value(frame, operation.function)):
        if isinstance(callee, External):
            kept = callee.name in _KEEPS
            return origins.any_of(frame, [argument.value for argument in operation.arguments]) if kept else None
    return CONTINUE
