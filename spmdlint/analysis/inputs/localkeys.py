"""Keys or draws for this process's devices, chosen by an index among the devices of all processes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    Collection,
    External,
    Frame,
    Site,
    Value,
    Values,
    certain,
)
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_READS: tuple[type[s.Operation], ...] = (s.Subscript, s.Call)

_COPIES = frozenset(("jax.numpy.broadcast_to", "jax.numpy.asarray", "jax.numpy.array"))


class GlobalIndex(Struct, frozen=True):
    """The choice, the call that gives the index, and where the keys are split or the rows drawn."""

    site: Site
    place: Site
    split: Site


def global_indices(evaluator: Evaluator, table: Typing) -> Iterator[GlobalIndex]:
    """Every such choice."""
    search = _Search(evaluator, table)
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        live = evaluator.live_blocks(frame)
        for block, number, _ in frame.code.each(_READS):
            found = search.at(frame, number) if block in live else None
            if found is not None:
                place, split = found
                yield GlobalIndex(Site(ref, number), place, split)


def split_for_own_devices(table: Typing, values: Values) -> Site | None:
    """Where keys may be split into as many as this process has devices, and into no other number."""
    own = [v.site for v in values if isinstance(v, Applied) and v.name in table.rows.split_own]
    if own:
        return own[0]
    splits = [v for v in values if isinstance(v, Applied) and v.name in table.rows.split]
    counts = [_count(split) for split in splits]
    local = all(isinstance(c, Applied) and c.name in table.rows.local_count for c in counts)
    return splits[0].site if splits and local else None


def _count(split: Applied) -> Value | None:
    given = split.arguments.keyword("num")
    if given is None and len(split.arguments.positional) > 1:
        given = split.arguments.positional[1]
    return certain(given) if given is not None else None


def drawn_for_own_devices(table: Typing, values: Values) -> Site | None:
    """Where random numbers are drawn with a row for each device of this process."""
    for value in values:
        if isinstance(value, Applied) and value.name.startswith("jax.random."):
            given = value.arguments.keyword("shape")
            given = given or next(iter(value.arguments.positional[1:2]), None)
            shape = certain(given) if given is not None else None
            rows = certain(shape.elements[0]) if isinstance(shape, Collection) and shape.elements else None
            if isinstance(rows, Applied) and rows.name in table.rows.local_count:
                return value.site
    return None


class _Search:
    def __init__(self, evaluator: Evaluator, table: Typing) -> None:
        self.ev = evaluator
        self.table = table

    def at(self, frame: Frame, number: int) -> tuple[Site, Site] | None:
        """The index and the split, if an operation chooses by such an index from such keys."""
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Subscript):
            base, index = operation.base, operation.index
        elif isinstance(operation, s.Call) and len(operation.arguments) > 1 and self._picks(frame, operation):
            base, index = (argument.value for argument in operation.arguments[:2])
        else:
            return None
        place = certain(self.ev.value(frame, index))
        if not isinstance(place, Applied) or self.table.rules.get(place.name) != "index":
            return None
        split = self._for_own_devices(self.ev.value(frame, base)) or self._for_own_devices(self._of_field(frame, base))
        return (place.site, split) if split is not None else None

    def _for_own_devices(self, values: Values) -> Site | None:
        """Where rows are made for the devices of this process; copies of such rows count as well."""
        value = certain(values)
        if isinstance(value, Applied) and value.name in _COPIES and value.arguments.positional:
            values = value.arguments.positional[0]
        return split_for_own_devices(self.table, values) or drawn_for_own_devices(self.table, values)

    def _picks(self, frame: Frame, operation: s.Call) -> bool:
        callee = self.ev.callee(frame, operation)
        return isinstance(callee, External) and callee.name in self.table.rows.pick

    def _of_field(self, frame: Frame, number: int) -> Values:
        """The values that such a field is made with, if only one class in the module has the field."""
        operation = self.ev.function(frame).operations[number]
        for _ in LINKS:
            if not isinstance(operation, s.Load):
                break
            stores = self.ev.reaching(frame, number, operation.name)
            if len(stores) != 1:
                return frozenset()
            store = self.ev.function(frame).operations[next(iter(stores))]
            if not isinstance(store, s.Store):
                return frozenset()
            number = store.value
            operation = self.ev.function(frame).operations[number]
        if not isinstance(operation, s.Attribute):
            return frozenset()
        found: set[Value] = set()
        made: set[FunctionRef] = set()
        for function in self.ev.project.modules[frame.ref.path].summary.functions:
            inner = self.ev.free_frame(FunctionRef(frame.ref.path, function.index))
            for call in function.operations:
                cls = self.ev.callee(inner, call)
                if isinstance(cls, ClassValue) and isinstance(call, s.Call):
                    names = self.ev.objects.field_names(cls) or ()
                    value = passed(call, operation.name, tuple(names))
                    if value is not None:
                        made.add(cls.ref)
                        found |= self.ev.value(inner, value)
        return frozenset(found) if len(made) == 1 else frozenset()
