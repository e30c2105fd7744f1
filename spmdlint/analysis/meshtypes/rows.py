"""The arguments of a map over rows, such as `pmap`: which hold data, and which one value copied to every device.

The map itself does not say. An argument is a copy if the body takes derivatives by it or applies it as the variables of
a model, if the host replicates it, or if the host replaces it by an output; a key is neither. A map whose arguments are
all copies would be pointless, so a value that depends on all remaining arguments depends on data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
)
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.windows import leading
from spmdlint.knowledge.files import names
from spmdlint.knowledge.typing import Typing
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s

_STACKING = frozenset(names("row_copiers"))
_DEPTH = 6


def is_copied(evaluator: Evaluator, table: Typing, value: Value | None) -> bool:
    """Whether a value holds one copy of something for each device."""
    if not isinstance(value, Applied):
        return False
    if value.name in table.rows.replicate:
        return True
    if table.rules.get(value.name) != "tree" or len(value.arguments.positional) != 2:
        return False
    function = certain(value.arguments.positional[0])
    return isinstance(function, FunctionValue) and _stacks(evaluator, function)


def _stacks(evaluator: Evaluator, function: FunctionValue) -> bool:
    """Whether a function returns its argument as often as there are devices."""
    body = evaluator.code(function.ref)
    if function.outer is None or len(body.returns) != 1 or body.returns[0][1].value is None:
        return False
    inside = evaluator.frame(function.ref, {}, function.outer, function.outer.depth + 1)
    call = body.operations[body.root_of(body.returns[0][1].value)]
    if not isinstance(call, s.Call) or len(call.arguments) != 2:
        return False
    callee = evaluator.callee(inside, call)
    if not isinstance(callee, External) or callee.name not in _STACKING:
        return False
    return _counts_devices(evaluator, inside, call.arguments[1].value)


def _counts_devices(evaluator: Evaluator, frame: Frame, shape: int) -> bool:
    """Whether the first of some sizes is the number of devices: ``(n, *x.shape)``, ``(n,) + x.shape``."""
    size = certain(evaluator.value(frame, leading(evaluator, frame, shape)))
    return isinstance(size, Applied) and units().counts.get(size.name) in ("local", "device")


class Rows(Struct, frozen=True):
    """The mapped arguments of one map, by position: all of them, and those that are certainly not data.

    ``derived``: the body takes derivatives by them.
    """

    mapped: frozenset[int]
    copies: frozenset[int]
    keys: frozenset[int]
    derived: frozenset[int] = frozenset()

    def of_data(self, rows: frozenset[int]) -> bool:
        """Whether a value made from these arguments certainly differs between the devices."""
        left = self.mapped - self.copies - self.keys
        return bool(left) and left <= rows

    def of_some_data(self, rows: frozenset[int]) -> bool:
        """The same for a sum or mean: if the model is known, anything else that is summed is data."""
        left = self.mapped - self.copies - self.keys
        return self.of_data(rows) or (bool(self.copies) and bool(left & rows))

    def of_step(self, rows: frozenset[int]) -> bool:
        """Whether applying a gradient is a training step: by a model, which precedes the data, and not by data.

        An adversarial attack, or a sampler, follows the derivative by its data, with the model as a preceding argument.
        """
        left = self.mapped - self.copies - self.keys
        return self.of_some_data(rows) and min(self.derived, default=0) < min(left)


def replicated(evaluator: Evaluator, table: Typing, sites: Iterable[Site]) -> frozenset[int]:
    """Positions at which every call passes a value that the host has just copied to all devices."""
    found = []
    for site in sites:
        values = {
            position: certain(evaluator.value(evaluator.free_frame(site.ref), n))
            for position, n in _given(evaluator, site)
        }
        copies = {p for p, v in values.items() if is_copied(evaluator, table, v)}
        found.append(frozenset(copies))
    return frozenset.intersection(*found) if found else frozenset()


def copied_first(evaluator: Evaluator, table: Typing, sites: Iterable[Site]) -> frozenset[int]:
    """Positions at which every call passes a value that the host copied to all devices, or its update in a loop."""
    found = []
    for site in sites:
        given = _given(evaluator, site)
        found.append(frozenset(p for p, n in given if _is_copy(evaluator, table, site, n, _DEPTH)))
    return frozenset.intersection(*found) if found else frozenset()


def _is_copy(evaluator: Evaluator, table: Typing, call: Site, number: int, depth: int) -> bool:
    """Whether a value, or a whole it is part of, was copied to all devices before the call's outputs replaced it."""
    frame = evaluator.free_frame(call.ref)
    value = certain(evaluator.value(frame, number))
    if is_copied(evaluator, table, value):
        return True
    operation = frame.code.operations[number]
    if isinstance(operation, s.Item) and depth:
        return _is_copy(evaluator, table, call, operation.value, depth - 1)
    if not isinstance(operation, s.Load) or not depth:
        return False
    stores = [frame.code.operations[n] for n in evaluator.reaching(frame, number, operation.name)]
    results = _results(frame.code.function, call.number)
    first = [store.value if isinstance(store, s.Store) else None for store in stores]
    first = [value for value in first if value is None or value not in results]
    return bool(first) and all(n is not None and _is_copy(evaluator, table, call, n, depth - 1) for n in first)


def carried(evaluator: Evaluator, sites: Iterable[Site]) -> frozenset[int]:
    """Positions at which a call is passed what it returned before, such as a training state: a copy on each device."""
    found: set[int] = set()
    for site in sites:
        function = evaluator.project.function(site.ref)
        kept = _kept(function, site.number)
        found |= {position for position, number in _given(evaluator, site) if _place(function, number) in kept}
    return frozenset(found)


def is_carried(function: s.Function, part: int) -> bool:
    """Whether an output, or a part of one, replaces an argument of the call that returns it."""
    call = part
    while isinstance(operation := function.operations[call], s.Item):
        call = operation.value
    if not isinstance(operation, s.Call):
        return False
    given = {_place(function, argument.value) for argument in operation.arguments}
    stored = {(o.name,) for o in function.operations if isinstance(o, s.Store) and o.value == part}
    return not stored.isdisjoint(given)


def _given(evaluator: Evaluator, site: Site) -> Iterator[tuple[int, int]]:
    """The positional arguments of a call."""
    call = evaluator.project.function(site.ref).operations[site.number]
    for position, argument in enumerate(call.arguments if isinstance(call, s.Call) else ()):
        if argument.keyword is not None or argument.star:
            return
        yield position, argument.value


def _kept(function: s.Function, call: int) -> set[tuple[str, ...]]:
    """The names and fields that a call's result, or a part of it, is stored to."""
    results = _results(function, call)
    found: set[tuple[str, ...]] = set()
    for operation in function.operations:
        if isinstance(operation, s.Store) and operation.value in results:
            found.add((operation.name,))
        elif isinstance(operation, s.StoreAttribute) and operation.value in results:
            place = _place(function, operation.base)
            if place is not None:
                found.add((*place, operation.name))
    return found


def _results(function: s.Function, call: int) -> set[int]:
    """The result of a call, and the parts of it."""
    results = {call}
    results |= {n for n, o in enumerate(function.operations) if isinstance(o, s.Item) and o.value in results}
    return results


def _place(function: s.Function, number: int) -> tuple[str, ...] | None:
    """A name with its fields, as written."""
    operation = function.operations[number]
    if isinstance(operation, s.Load):
        return (operation.name,)
    if isinstance(operation, s.Attribute):
        base = _place(function, operation.base)
        return (*base, operation.name) if base is not None else None
    return None


def made_apart(evaluator: Evaluator, table: Typing, sites: Iterable[Site], positions: frozenset[int]) -> bool:
    """Whether a call of a map passes a model of its own to each device: ``pmap(init)(jax.random.split(key, n))``.

    Such models are trained apart, and their gradients are not to be reduced.
    """
    return any(
        _is_made_apart(evaluator, table, value)
        for site in sites
        for position, number in _given(evaluator, site)
        if position in positions
        for value in evaluator.value(evaluator.free_frame(site.ref), number)
    )


def _is_made_apart(evaluator: Evaluator, table: Typing, value: Value) -> bool:
    if not isinstance(value, Called) or not isinstance(value.function, Applied):
        return False
    known = evaluator.knowledge.get(value.function.name)
    frame = evaluator.free_frame(value.site.ref)
    call = frame.code.operations[value.site.number]
    if known is None or not known.by_hand or not isinstance(call, s.Call):
        return False
    keys = (certain(evaluator.value(frame, argument.value)) for argument in call.arguments)
    return any(isinstance(each, Applied) and each.name in table.rows.split for each in keys)


FOLD = "jax.random.fold_in"
_INDEX = "jax.lax.axis_index"


def has_own_sibling(ev: Evaluator, split: Site | None) -> bool:
    """Whether a key from the same split has the index of the device folded in: its author tells the two apart."""
    if split is None:
        return False
    frame = ev.free_frame(split.ref)
    return any(_split_of(frame, key) == split.number for key in keys_of_devices(ev, frame))


def keys_of_devices(ev: Evaluator, frame: Frame) -> Iterator[int]:
    """The keys that a function makes different for each device: it folds in its index, or a number made from that."""
    for _, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
        if ev.callee(frame, call) == External(FOLD) and len(call.arguments) == 2:
            key, folded = (argument.value for argument in call.arguments)
            made_from = (value for part in parts(ev, frame, folded, _DEPTH) for value in ev.value(frame, part))
            if any(isinstance(value, Applied) and value.name == _INDEX for value in made_from):
                yield key


def _split_of(frame: Frame, number: int) -> int:
    """The operation that a key, or the row of keys that it was taken from, is the result of."""
    code = frame.code
    root = code.root_of(number)
    operation = code.operations[root]
    while isinstance(operation, (s.Item, s.Subscript)):
        root = code.root_of(operation.value if isinstance(operation, s.Item) else operation.base)
        operation = code.operations[root]
    return root
