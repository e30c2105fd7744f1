"""Where the host takes one device's row of an output for the value of all devices."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.participants import on_local_devices
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, certain, constant
from spmdlint.analysis.meshtypes.bodies import UNNAMED, Bodies, Mapped
from spmdlint.analysis.meshtypes.rows import is_carried
from spmdlint.analysis.meshtypes.states import (
    DIFFERENT,
    UNKNOWN,
    Leaf,
    Many,
    Pullback,
    Record,
    Row,
    Type,
    flat,
    item_of,
)
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s

_DEPTH = 12
_HELPERS = 3
"""The most functions inside one another that hand on a first row, with the one that takes it."""


class OneRow(Struct, frozen=True):
    """A read of the first row of an output that each device computes for itself.

    ``part`` is its key in a dictionary that is read as a whole, and ``origin`` the site where it was computed.
    """

    site: Site
    map: Site
    library: str
    axis: str
    part: str
    origin: Site | None


class _Given(Struct, frozen=True):
    """The result of a call of a map, or a part of it."""

    mapped: Mapped
    type: Type
    part: str = ""


class Outputs:
    """Follows the outputs of maps over rows through the host's functions. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach, bodies: Bodies, table: Typing) -> None:
        self.ev = evaluator
        self.reach = reach
        self.bodies = bodies
        self.table = table

    def one_rows(self) -> Iterator[OneRow]:
        """Every read of one row of a sum or mean that no device has computed over all rows."""
        calling = {
            site.ref for mapped in self.bodies.mapped() for site in self.reach.use_calls.get(mapped.use.site, ())
        }
        for ref in self.ev.project.functions():
            if ref not in calling or ref in self.reach.traced:
                continue
            frame = self.ev.free_frame(ref)
            function = self.ev.function(frame)
            for block in sorted(self.ev.live_blocks(frame)):
                for number in function.blocks[block].operations:
                    yield from self._at(frame, number)

    def differs(self, frame: Frame, number: int) -> bool | None:
        """Whether an output certainly differs between devices and is not a state; None if it is not an output."""
        given = self._given(frame, number, _DEPTH, rows=True)
        if given is None:
            return None
        operation = self.ev.function(frame).operations[number]
        hands_on = self.ev.may_call(frame, operation, *self.table.rows.hand_on)  # loss = jax.device_get(loss)
        made = not hands_on and self._read(frame, number) is None
        if made and is_carried(self.ev.function(frame), number):
            return False
        mapped = given.mapped
        leaves = [leaf for _, leaf in _parts(given.type, "")]
        own = on_local_devices(mapped.use.applied)  # what is reduced over these differs between processes
        return any((own or leaf.state(mapped.axis) in DIFFERENT) and mapped.rows.of_data(leaf.rows) for leaf in leaves)

    def _at(self, frame: Frame, number: int) -> Iterator[OneRow]:
        read = self._read(frame, number)
        given = self._given(frame, read, _DEPTH) if read is not None else None
        if given is None:
            return
        mapped = given.mapped
        if mapped.axis == UNNAMED:
            return  # each row may well be meant to be a result of its own
        for part, leaf in _parts(given.type, given.part):
            share = leaf.state(mapped.axis) == "partial" or leaf.marked("ratio", mapped.axis)
            if share and mapped.rows.of_some_data(leaf.rows):
                use, origin = mapped.use, leaf.held(mapped.axis).origin
                library = use.applied.name.rpartition(".")[2]
                yield OneRow(Site(frame.ref, number), use.site, library, mapped.axis, part, origin)
                return

    def _read(self, frame: Frame, number: int, depth: int = _HELPERS) -> int | None:
        """The operation whose first row an operation reads; None if it reads none."""
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Subscript):
            return operation.base if self._is_first(frame, operation) else None
        if not isinstance(operation, s.Call) or not operation.arguments:
            return None
        callee = self.ev.callee(frame, operation)
        if isinstance(callee, FunctionValue):
            taken, called = self._read_by(callee, depth), self.ev.code(callee.ref).function
            return passed_to(called, operation, taken.name, bound=callee.receiver is not None) if taken else None
        if not isinstance(callee, External):
            return None
        if callee.name in self.table.rows.first:
            return operation.arguments[0].value
        if callee.name in self.table.rows.first_of_each:
            return self._put_into(frame, operation.arguments[0].value)
        if self.table.rules.get(callee.name) == "tree" and len(operation.arguments) == 2:
            function = certain(self.ev.value(frame, operation.arguments[0].value))
            if isinstance(function, FunctionValue) and self._read_by(function, depth) is not None:
                return operation.arguments[1].value
        return None

    def _read_by(self, helper: FunctionValue, depth: int) -> s.Parameter | None:
        """The parameter of which a function of the project returns the first row."""
        inside = self.ev.free_frame(helper.ref)
        returned = [each.value for _, each in inside.code.returns if each.value is not None]
        read = self._read(inside, returned[0], depth - 1) if len(returned) == 1 and depth else None
        taken = inside.code.operations[inside.code.root_of(read)] if read is not None else None
        return taken if isinstance(taken, s.Parameter) else None

    def _put_into(self, frame: Frame, number: int) -> int | None:
        """The value that a loop appends to a list."""
        operations = self.ev.function(frame).operations
        kept = operations[number]
        for operation in operations:
            method = operations[operation.function] if isinstance(operation, s.Call) else None
            if isinstance(operation, s.Call) and isinstance(method, s.Attribute) and method.name == "append":
                base = operations[method.base]
                if isinstance(base, s.Load) and isinstance(kept, s.Load) and base.name == kept.name:
                    return operation.arguments[0].value if operation.arguments else None
        return None

    def _is_first(self, frame: Frame, operation: s.Subscript) -> bool:
        index = constant(self.ev.value(frame, operation.index))
        return index is not None and type(index.value) is int and index.value in (0, -1)

    # -- the outputs that values are

    def _given(self, frame: Frame, number: int, depth: int, *, rows: bool = False) -> _Given | None:
        """The output, or part of an output, that a value certainly is; None otherwise.

        ``rows``: the first row of a whole output counts as well.
        """
        operation = self.ev.function(frame).operations[number]
        if depth == 0:
            return None
        if isinstance(operation, s.Store):
            return self._given(frame, operation.value, depth - 1, rows=rows)
        if isinstance(operation, s.Load):
            return self._loaded(frame, number, operation, depth, rows=rows)
        if isinstance(operation, s.Item) and not operation.star:
            base = self._given(frame, operation.value, depth - 1, rows=rows)
            return self._part(base, operation.index) if base is not None else None
        if isinstance(operation, s.Subscript):
            key = constant(self.ev.value(frame, operation.index))
            base = self._given(frame, operation.base, depth - 1, rows=rows) if key is not None else None
            return self._part(base, key.value) if base is not None and key is not None else None
        if isinstance(operation, (s.Display, s.DictDisplay)):
            return self._together(frame, operation, depth, rows=rows)
        if isinstance(operation, s.Attribute):
            base = self._given(frame, operation.base, depth - 1, rows=rows)
            return self._part(base, operation.name) if base is not None and isinstance(base.type, Record) else None
        if isinstance(operation, s.Call):
            read = self._read(frame, number) if rows else None
            if read is not None:
                return self._given(frame, read, depth - 1, rows=rows)
            return self._called(frame, operation, depth, rows=rows)
        return None

    def _together(self, frame: Frame, display: s.Display | s.DictDisplay, depth: int, *, rows: bool) -> _Given | None:
        """Parts of the outputs of one map in a tuple, a list or a dictionary, possibly beside other values."""
        found = [self._given(frame, part, depth - 1, rows=rows) for part in display.elements]
        there = [given for given in found if given is not None]
        if not there or any(given.mapped != there[0].mapped for given in there):
            return None
        types = [given.type if given is not None else UNKNOWN for given in found]
        if isinstance(display, s.Display):
            return _Given(there[0].mapped, Row(tuple(types)), there[0].part) if not display.starred else None
        keys = [constant(self.ev.value(frame, key)) if key is not None else None for key in display.keys]
        named = zip((key.value if key is not None else None for key in keys), types, strict=True)
        return _Given(there[0].mapped, Record(tuple(named))) if None not in keys else None

    def _loaded(self, frame: Frame, number: int, operation: s.Load, depth: int, *, rows: bool) -> _Given | None:
        function = self.ev.function(frame)
        if not function.binds(operation.name):
            return None
        stores = self.ev.reaching(frame, number, operation.name)
        found = [self._given(frame, store, depth - 1, rows=rows) for store in sorted(stores)]
        there = [given for given in found if given is not None]
        # Before the first iteration of a loop there is often a placeholder.
        return there[0] if there and all(given == there[0] for given in there) else None

    def _called(self, frame: Frame, operation: s.Call, depth: int, *, rows: bool) -> _Given | None:
        callee = self.ev.callee(frame, operation)
        if isinstance(callee, Applied):
            mapped = self.bodies.of_rows(callee)
            return _Given(mapped, mapped.result) if mapped is not None else None
        if isinstance(callee, External) and callee.name in self.table.rows.hand_on and operation.arguments:
            return self._given(frame, operation.arguments[0].value, depth - 1, rows=rows)
        return None

    @staticmethod
    def _part(base: _Given, key: object) -> _Given | None:
        if not isinstance(base.type, (Row, Record)):
            return None  # a row of an array, or an attribute of one
        part = repr(key) if isinstance(key, str) else base.part
        return _Given(base.mapped, item_of(base.type, key), part)


def _parts(tree: Type, part: str) -> Iterator[tuple[str, Leaf]]:
    """The arrays in a pytree, each with the innermost key of its path."""
    if isinstance(tree, (Leaf, Pullback)):
        yield part, flat(tree)
    elif isinstance(tree, Many):
        yield from _parts(tree.element, part)
    elif isinstance(tree, Row):
        for element in tree.elements:
            yield from _parts(element, part)
    else:
        for key, each in tree.items:
            yield from _parts(each, repr(key) if isinstance(key, str) else part)
