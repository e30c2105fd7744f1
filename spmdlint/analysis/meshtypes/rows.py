"""The arguments of a map over rows, as `pmap`: which hold data, and which one value copied to every device.

The map itself says nothing of that. An argument is a copy if the body takes derivatives by it or applies it as the
variables of a model, if the host replicates it, or if the host puts an output in its place; a key is neither. A map
that is given copies alone would be pointless, so what depends on all that is left depends on data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Site, certain
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s

_DEPTH = 6


class Rows(Struct, frozen=True):
    """The mapped arguments of one map, by position: all of them, and those that are surely no data.

    ``derived``: the body takes derivatives by them. ``reduced``: what the sums and means over devices are made from.
    """

    mapped: frozenset[int]
    copies: frozenset[int]
    keys: frozenset[int]
    derived: frozenset[int] = frozenset()
    reduced: frozenset[frozenset[int]] = frozenset()

    def of_data(self, rows: frozenset[int]) -> bool:
        """Does what is made from these arguments surely differ between the devices."""
        left = self.mapped - self.copies - self.keys
        return bool(left) and left <= rows

    def of_reduced(self, rows: frozenset[int]) -> bool:
        """Is it made from all that something is made from which the body reduces: so that differs between devices.

        One argument alone may be a tree, of which only a part differs.
        """
        return any(len(each) > 1 and each <= rows for each in self.reduced)

    def of_some_data(self, rows: frozenset[int]) -> bool:
        """The same, of a sum or mean: where the model is known, whatever else is summed up is data."""
        left = self.mapped - self.copies - self.keys
        return self.of_data(rows) or (bool(self.copies) and bool(left & rows))

    def of_step(self, rows: frozenset[int]) -> bool:
        """Is a gradient that is applied a training step: by a model, which comes before the data, and not by data.

        An attack, or a sampler, follows the derivative by its data, with the model as another argument before it.
        """
        left = self.mapped - self.copies - self.keys
        return self.of_some_data(rows) and min(self.derived, default=0) < min(left)


def replicated(evaluator: Evaluator, table: Typing, sites: Iterable[Site]) -> frozenset[int]:
    """Positions at which every call passes what the host has just copied to all devices."""
    found = []
    for site in sites:
        values = {
            position: certain(evaluator.value(evaluator.free_frame(site.ref), n))
            for position, n in _given(evaluator, site)
        }
        copies = {p for p, v in values.items() if isinstance(v, Applied) and v.name in table.rows.replicate}
        found.append(frozenset(copies))
    return frozenset.intersection(*found) if found else frozenset()


def copied_first(evaluator: Evaluator, table: Typing, sites: Iterable[Site]) -> frozenset[int]:
    """Positions at which every call passes what the host has copied to all devices, or what came of that in a loop."""
    found = []
    for site in sites:
        given = _given(evaluator, site)
        found.append(frozenset(p for p, n in given if _is_copy(evaluator, table, site, n, _DEPTH)))
    return frozenset.intersection(*found) if found else frozenset()


def _is_copy(evaluator: Evaluator, table: Typing, call: Site, number: int, depth: int) -> bool:
    """Was a value copied to all devices, as a part of something that was, before the call put its outputs there."""
    frame = evaluator.free_frame(call.ref)
    value = certain(evaluator.value(frame, number))
    if isinstance(value, Applied) and value.name in table.rows.replicate:
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
    """Positions at which a call is given what it has given before, as a training state: a copy on each device."""
    found: set[int] = set()
    for site in sites:
        function = evaluator.project.function(site.ref)
        kept = _kept(function, site.number)
        found |= {position for position, number in _given(evaluator, site) if _place(function, number) in kept}
    return frozenset(found)


def is_carried(function: s.Function, part: int) -> bool:
    """Is an output, or a part of one, put in the place of an argument of the call that gives it."""
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
    """What a call gives, and the parts of that."""
    results = {call}
    results |= {n for n, o in enumerate(function.operations) if isinstance(o, s.Item) and o.value in results}
    return results


def _place(function: s.Function, number: int) -> tuple[str, ...] | None:
    """A name with fields of it, as it is written."""
    operation = function.operations[number]
    if isinstance(operation, s.Load):
        return (operation.name,)
    if isinstance(operation, s.Attribute):
        base = _place(function, operation.base)
        return (*base, operation.name) if base is not None else None
    return None
