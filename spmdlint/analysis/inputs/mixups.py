"""Where counts of processes, of all devices and of this process's devices are mistaken for one another.

On one process they are equal, or nearly so; a program that was tried there reads too few rows, devices of a different
process, or past the end when it runs on many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Values,
    certain,
    deed,
)
from spmdlint.analysis.inputs.quantities import Portion, Quantities, Quantity, Whole
from spmdlint.analysis.inputs.rows import MULTIPLE, Batches, Leading, Rows, own_part
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.units import Unit
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

MixupKind = Literal["element", "first", "share", "compare", "rows", "part", "mesh", "mean", "twice", "sum"]
_ASKED: tuple[type[s.Operation], ...] = (s.Subscript, s.Compare, s.Binary, s.Call)
_ORDERS = frozenset(("<", "<=", ">", ">=", "==", "!="))


class Mixup(Struct, frozen=True):
    """Two quantities of different units that meet at a site; ``other`` is None if the site itself has the unit.

    ``reason`` leads from there to the first, where it is the size of what is passed.
    """

    kind: MixupKind
    site: Site
    one: Quantity
    other: Quantity | None = None
    reason: Reason | None = None


class Mixups:
    """Finds such mix-ups, operation by operation."""

    def __init__(self, calls: Calls, reach: Reach, quantities: Quantities, multi: MultiProcess) -> None:
        self.ev = calls.ev
        self.table = quantities.table
        self.multi = multi
        self.quantities = quantities
        self.conditions = self.ev.once(Conditions)
        self._portion = Origins(self.ev, calls, reach, Portion(self.quantities, "process"))
        self._of_device = Origins(self.ev, calls, reach, Portion(self.quantities, "device", "local"))
        self._whole = Origins(self.ev, calls, reach, Whole(self.quantities))
        leading = Leading(self.quantities, self._whole)
        batches = Origins(self.ev, calls, reach, Batches(leading.why))
        self._row = Origins(self.ev, calls, reach, Rows(self.table, batches, leading))

    def found(self) -> Iterator[Mixup]:
        """Every such place in code that several processes run."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            for block, number, operation in frame.code.each(_ASKED):
                mixup = self._at(frame, number, operation) if block in live else None
                if mixup is not None and not self.conditions.alone(frame, block):
                    yield mixup

    def _at(self, frame: Frame, number: int, operation: s.Operation) -> Mixup | None:
        if isinstance(operation, s.Subscript):
            return self._element(frame, number, operation)
        if isinstance(operation, s.Compare):
            return self._compared(frame, number, operation)
        if isinstance(operation, s.Binary) and operation.operator in ("/", "//", "%"):
            mean = self._mean(frame, number, operation) if operation.operator != "%" else None
            return mean or self._twice(frame, number, operation)
        if isinstance(operation, s.Binary) and operation.operator == "+":
            return self._sum(frame, number, operation)
        if isinstance(operation, s.Call) and not operation.decorator:
            return self._called(frame, number, operation)
        return None

    # -- lists and shares

    def _element(self, frame: Frame, number: int, operation: s.Subscript) -> Mixup | None:
        index = self.ev.function(frame).operations[operation.index]
        if isinstance(index, s.Slice):
            if index.lower is not None and index.step is not None:
                return self._share(frame, number, index.lower, index.step)
            window = self._window(frame, number, index.lower) if index.lower is not None else None
            return window or self._first(frame, number, operation, index)
        place = self.quantities.quantity(frame, operation.index)
        if place is None or place.role != "place":
            return None
        listed = self.quantities.quantity(frame, operation.base) or self.quantities.pieces(frame, operation.base)
        if listed is None or listed.role != "list" or listed.unit == place.unit:
            return None
        if (listed.unit, place.unit) == ("device", "local") and not self.multi.acts_for(frame.ref.path):
            return None
        return Mixup("element", Site(frame.ref, number), listed, place)

    def _first(self, frame: Frame, number: int, operation: s.Subscript, index: s.Slice) -> Mixup | None:
        """A slice ``jax.devices()[:jax.local_device_count()]``, which has the devices of process 0."""
        if index.lower is not None or index.upper is None or index.step is not None:
            return None
        count = self.quantities.quantity(frame, index.upper)
        if count is None or (count.role, count.unit) != ("count", "local"):
            return None
        listed = self.quantities.quantity(frame, operation.base)
        if listed is None or (listed.role, listed.unit) != ("list", "device"):
            return None
        return Mixup("first", Site(frame.ref, number), listed, count)

    def _share(self, frame: Frame, number: int, place: int, count: int) -> Mixup | None:
        """A share that takes every count-th element, starting at an index."""
        one, other = self.quantities.quantity(frame, place), self.quantities.quantity(frame, count)
        if one is None or other is None or (one.role, other.role) != ("place", "count") or one.unit == other.unit:
            return None
        return Mixup("share", Site(frame.ref, number), one, other)

    def _window(self, frame: Frame, number: int, start: int) -> Mixup | None:
        """A window that begins at an index times the size of a part: ``process_index() * (size // device_count())``."""
        operations = frame.code.operations
        product = operations[resolved(self.ev, frame, start)]
        if not isinstance(product, s.Binary) or product.operator != "*":
            return None
        for place, size in ((product.left, product.right), (product.right, product.left)):
            one = self.quantities.quantity(frame, place)
            part = self._of_device.why(frame, size) if one is not None and one.role == "place" else None
            if one is not None and one.unit == "process" and part is not None:
                unit: Unit = "device" if part.kind == "device" else "local"
                return Mixup("share", Site(frame.ref, number), one, Quantity("count", unit, *_source(part)))
        return None

    def _compared(self, frame: Frame, number: int, operation: s.Compare) -> Mixup | None:
        if len(operation.operators) != 1 or operation.operators[0] not in _ORDERS:
            return None
        for one, other in (operation.operands, operation.operands[::-1]):
            place = self.quantities.quantity(frame, one)
            if place is None or (place.role, place.unit) != ("place", "process"):
                continue
            beside = self.ev.function(frame).operations[resolved(self.ev, frame, other)]
            if isinstance(beside, s.Binary) and beside.operator == "%":
                count = self.quantities.quantity(frame, beside.right)
                kind: MixupKind = "share"
            else:
                last = isinstance(beside, s.Binary) and beside.operator == "-"
                count = self.quantities.quantity(frame, beside.left if isinstance(beside, s.Binary) and last else other)
                kind = "compare"
            if count is not None and count.role == "count" and count.unit != "process":
                return Mixup(kind, Site(frame.ref, number), place, count)
        return None

    def _sum(self, frame: Frame, number: int, whole: s.Binary) -> Mixup | None:
        """A seed to which the index of a process and that of one of its threads or workers are added."""
        terms, pending, sums = dict[int, str](), [whole.right, whole.left], dict[int, s.Binary]()
        while pending:
            term = pending.pop()
            made, written = resolved(self.ev, frame, term), frame.code.operations[term]
            operation = frame.code.operations[made]
            if not isinstance(operation, s.Binary) or operation.operator != "+":
                terms[term] = written.name if isinstance(written, (s.Load, s.Attribute)) else ""
            elif made not in sums:
                pending += [operation.right, operation.left]
                sums[made] = operation
        inner = next((n for n, name in terms.items() if not self.table.workers.isdisjoint(name.split("_"))), None)
        if inner is None or not any("seed" in name for name in terms.values()):
            return None
        places = (self.quantities.quantity(frame, term) for term in terms)
        place = next((each for each in places if each and (each.role, each.unit) == ("place", "process")), None)
        if place is None or any(self._sum(frame, made, each) for made, each in sums.items() if made < number):
            return None  # what is added to such a sum changes nothing
        worker = Quantity("place", "local", Site(frame.ref, inner), terms[inner])
        return Mixup("sum", Site(frame.ref, number), place, worker)

    # -- calls

    def _called(self, frame: Frame, number: int, operation: s.Call) -> Mixup | None:
        arguments = operation.arguments
        if any(argument.star for argument in arguments):
            return None
        callee = self.ev.callee(frame, operation)
        found = self._named_share(frame, number, operation, callee)
        if found is not None:
            return found
        method = self.ev.function(frame).operations[operation.function]
        if isinstance(callee, External):
            if callee.name in self.table.strides and len(arguments) == 4:
                return self._share(frame, number, arguments[1].value, arguments[3].value)
            if deed(callee) == "range" and len(arguments) == 2:
                return self._window(frame, number, arguments[0].value)
            if deed(callee) == "range" and len(arguments) == 3:
                return self._share(frame, number, arguments[0].value, arguments[2].value)
            if callee.name in self.table.meshes and arguments:
                return self._mesh(frame, number, operation)
            return self._part(frame, operation, callee.name)
        if isinstance(callee, Applied):
            return self._rows(frame, operation, callee)
        if isinstance(method, s.Attribute) and not isinstance(callee, FunctionValue) and arguments:
            if method.name in self.table.sharders and len(arguments) == 2 and not any(a.keyword for a in arguments):
                return self._share(frame, number, arguments[1].value, arguments[0].value)
            if method.name in self.table.part_of:
                place = self.quantities.quantity(frame, arguments[0].value)
                if place is not None and place.role == "place" and place.unit != "local":
                    parts = Quantity("list", "local", Site(frame.ref, number), f".{method.name}()")
                    return Mixup("element", Site(frame.ref, number), parts, place)
        return None

    def _read_in(self, ref: FunctionRef) -> frozenset[str]:
        """The names that a function, or a function defined in it, reads."""
        functions = self.ev.project.modules[ref.path].summary.functions
        inside = functions[ref.index].qualname + "."
        refs = (FunctionRef(ref.path, f.index) for f in functions if f.qualname.startswith(inside))
        return frozenset(load.name for each in (ref, *refs) for _, load in self.ev.code(each).of_kind(s.Load))

    def _named_share(self, frame: Frame, number: int, operation: s.Call, callee: object) -> Mixup | None:
        """A share whose index and count are passed by names that belong together."""
        given = {argument.keyword: argument.value for argument in operation.arguments if argument.keyword}
        if isinstance(callee, FunctionValue):
            formals = [formal.name for formal in self.ev.project.function(callee.ref).formals]
            formals = formals[1:] if callee.receiver is not None else formals
            positional = [argument.value for argument in operation.arguments if not argument.keyword]
            given.update(zip(formals, positional, strict=False))
            read = self._read_in(callee.ref)
            given = {name: value for name, value in given.items() if name in read}  # only what is read makes parts
        for place, count in sorted(self.table.shares):
            if place in given and count in given:
                found = self._share(frame, number, given[place], given[count])
                if found is not None:
                    return found
        return None

    def _mesh(self, frame: Frame, number: int, operation: s.Call) -> Mixup | None:
        """A mesh over all devices with room for those of one process only."""
        if any(argument.keyword == self.table.devices for argument in operation.arguments):
            return None
        sizes = self.ev.function(frame).operations[resolved(self.ev, frame, operation.arguments[0].value)]
        if not isinstance(sizes, s.Display) or sizes.starred or not self.multi.acts_for(frame.ref.path):
            return None
        counts = [self.quantities.quantity(frame, element) for element in sizes.elements]
        rest = [n for n, count in zip(sizes.elements, counts, strict=True) if count is None]
        known = [count for count in counts if count is not None]
        ones = all(frame.code.operations[n] == s.Const(1) for n in rest)
        if len(known) == 1 and ones and (known[0].role, known[0].unit) == ("count", "local"):
            return Mixup("mesh", Site(frame.ref, number), known[0])
        return None

    def _rows(self, frame: Frame, operation: s.Call, callee: Applied) -> Mixup | None:
        """Rows for all devices, passed to a map over those of this process."""
        if not self.quantities.mapped_over_all(callee) or not self.multi.acts_for(frame.ref.path):
            return None
        axes = self.ev.argument(callee, "in_axes")
        for position, argument in enumerate(operation.arguments):
            if axes is not None and (argument.keyword or not _is_first(axes, position)):
                continue
            for number in _arrays(frame, argument.value):
                found = self._row.why(frame, number)
                if found is not None and found.kind == "device":
                    return Mixup("rows", Site(frame.ref, number), _devices(found), reason=found)
        return None

    def _part(self, frame: Frame, operation: s.Call, name: str) -> Mixup | None:
        """Rows for all devices, passed as what this process has."""
        known, part = self.ev.knowledge.get(name), own_part(self.ev, frame, operation)
        if known is None or part is None or passed(operation, "global_shape", known.positional) is not None:
            return None
        found = self._row.why(frame, part)
        if found is None or found.kind not in ("device", MULTIPLE):
            return None
        return Mixup("part", Site(frame.ref, part), _devices(found), reason=found)

    def _mean(self, frame: Frame, number: int, operation: s.Binary) -> Mixup | None:
        """A sum over all devices, divided by the number of this process's devices."""
        count = self.quantities.quantity(frame, operation.right)
        if count is None or (count.role, count.unit) != ("count", "local"):
            return None
        total = certain(self.ev.value(frame, operation.left))
        if not isinstance(total, Applied) or total.name not in self.table.sums:
            return None
        if not self.multi.acts_for(frame.ref.path) or self.ev.argument(total, "axis_index_groups") is not None:
            return None
        return Mixup("mean", Site(frame.ref, number), count)

    def _twice(self, frame: Frame, number: int, operation: s.Binary) -> Mixup | None:
        """One process's portion of something, divided by the number of all devices."""
        whole = self._whole.why(frame, operation.right)
        portion = self._portion.why(frame, operation.left) if whole is not None else None
        if whole is None or portion is None:
            return None
        by, every = Quantity("count", "process", *_source(portion)), _devices(whole)
        return Mixup("twice", Site(frame.ref, number), by, every)


def _source(reason: Reason) -> tuple[Site, str]:
    return reason.source.site, reason.source.text


def _devices(reason: Reason) -> Quantity:
    """The devices of all processes that a size counts."""
    return Quantity("count", "device", *_source(reason))


def _arrays(frame: Frame, number: int) -> list[int]:
    """The arrays that are passed: one, or those in a tuple that is written there."""
    passed = frame.code.operations[number]
    return list(passed.elements) if isinstance(passed, s.Display) and not passed.starred else [number]


def _is_first(axes: Values, position: int) -> bool:
    """Whether an argument is mapped over its first axis, as far as `in_axes` is known."""
    given = certain(axes)
    if isinstance(given, Collection) and not given.open and position < len(given.elements):
        given = certain(given.elements[position])
    return given == Constant(0)
