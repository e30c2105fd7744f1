"""Lists that are filled by `append`, and dictionaries by their keys: what their elements may be.

Where the list and all its appends stand in one block, every element is known by its place. Otherwise the list is open,
and ``each`` says what any of its elements is. A list that is changed in any other way may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from spmdlint.analysis.evaluation.code import changed_in_place
from spmdlint.analysis.evaluation.values import Collection, DictionaryValue, Frame, Value, Values, certain, join, one
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_Is = Callable[[s.Function, int], bool]
"""Is an operation the collection in question: a load of its name, or of its attribute."""


def filled_name(ev: Evaluator, frame: Frame, name: str, values: Values, before: int | None = None) -> Values | None:
    """A list under a local or global name, as it is at the operation ``before``; None where it may be anything."""
    function = ev.function(frame)
    made = certain(values)
    stores = function.stores[name]
    if not is_fillable(made) or len(stores) != 1:
        return None
    inside = (FunctionRef(frame.ref.path, inner.index) for inner in _functions_inside(ev, frame, function, name))
    if any(name in ev.code(inner).mutated_names for inner in inside):
        return None

    def is_it(f: s.Function, number: int) -> bool:
        load = f.operations[number]
        return isinstance(load, s.Load) and load.name == name

    appended = _appended(function, is_it) if isinstance(made, Collection) else _put(function, is_it)
    if appended is None:
        return None
    live = ev.live_blocks(frame)
    found = [(call, value) for call, value in appended if function.block_of[call] in live]
    block = function.block_of[stores[0]]
    if isinstance(made, Collection) and all(function.block_of[call] == block for call, _ in found):
        # Behind the list in its block, only what was appended before; elsewhere, and in another round, all.
        until = before if before is not None and stores[0] < before and function.block_of[before] == block else None
        elements = [ev.value(frame, value) for call, value in found if until is None or call < until]
        return one(replace(made, elements=(*made.elements, *elements)))
    return one(opened(made, [ev.value(frame, value) for _, value in found]))


def is_fillable(made: Value | None) -> TypeGuard[Collection | DictionaryValue]:
    """Is it a list or a dictionary of which all elements are known so far."""
    if isinstance(made, DictionaryValue):
        return not made.open
    return isinstance(made, Collection) and made.kind == "list" and not made.open


def opened(made: Collection | DictionaryValue, added: list[Values]) -> Collection | DictionaryValue:
    """A list or dictionary to which some values are added, nobody knows how often."""
    if isinstance(made, DictionaryValue):
        return DictionaryValue(made.items, open=True, each=join(*added))
    return Collection(made.kind, made.elements, open=True, each=join(*made.elements, *added))


def _functions_inside(ev: Evaluator, frame: Frame, function: s.Function, name: str) -> Iterator[s.Function]:
    """The other functions of the file that see this name."""
    summary = ev.project.modules[frame.ref.path].summary
    wanted = None if function.kind == "module" else function
    for other in summary.functions:
        if other is not function and summary.scope_of(other, name) is wanted:
            yield other


def put_into_attribute(
    function: s.Function, receiver: str, name: str, made: Collection | DictionaryValue
) -> list[tuple[int, int]] | None:
    """What a method puts into an attribute of its receiver, and where; None where it changes that in another way."""

    def is_attribute(f: s.Function, number: int) -> bool:
        operation = f.operations[number]
        if not isinstance(operation, s.Attribute) or operation.name != name:
            return False
        base = f.operations[operation.base]
        return isinstance(base, s.Load) and base.name == receiver

    return _appended(function, is_attribute) if isinstance(made, Collection) else _put(function, is_attribute)


def _put(function: s.Function, is_it: _Is) -> list[tuple[int, int]] | None:
    """The stores into a dictionary, and what they store; None where it is changed in any other way."""
    found: list[tuple[int, int]] = []
    for number, operation in enumerate(function.operations):
        changed = changed_in_place(operation)
        if changed is None or not is_it(function, changed):
            continue
        if isinstance(operation, s.StoreSubscript):
            found.append((number, operation.value))
        elif not isinstance(operation, s.Delete) and getattr(operation, "name", "") not in ("pop", "clear"):
            return None
    return found


def _appended(function: s.Function, is_it: _Is) -> list[tuple[int, int]] | None:
    """The calls of `append` on a collection, and what they append; None where it is changed in any other way."""
    calls = {
        operation.function: (number, operation.arguments[0].value)
        for number, operation in enumerate(function.operations)
        if isinstance(operation, s.Call) and len(operation.arguments) == 1 and not operation.arguments[0].star
    }
    found: list[tuple[int, int]] = []
    for number, operation in enumerate(function.operations):
        changed = changed_in_place(operation)
        if changed is None or not is_it(function, changed):
            continue
        if not isinstance(operation, s.Attribute) or operation.name != "append" or number not in calls:
            return None
        found.append(calls[number])
    return found
