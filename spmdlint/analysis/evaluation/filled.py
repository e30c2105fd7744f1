"""Lists that are filled by `append` or ``+= [...]``, and dictionaries that are filled by key: what may be in them.

If the list and all its appends are in one block, every element is known by its position. Otherwise the list is open,
and ``each`` says what any of its elements may be. A list that is changed in any other way may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.registered import frames_at_import
from spmdlint.analysis.evaluation.values import (
    Collection,
    DictionaryValue,
    Frame,
    Value,
    Values,
    certain,
    constant,
    join,
    one,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.summary import ENTRY, EXIT

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_Is = Callable[[s.Function, int], bool]
"""Whether an operation is the collection in question: a load of its name, or of its attribute."""


def filled_name(ev: Evaluator, frame: Frame, name: str, values: Values, before: int | None) -> Values | None:
    """A list under a local or global name, as it is at the operation ``before``; None if it may be anything."""
    function = ev.function(frame)
    stores = [store for store in function.stores.get(name, ()) if not _is_extension(function, store, name)]
    if len(stores) != 1:
        return None
    made = certain(values if len(function.stores[name]) == 1 else ev.value(frame, stores[0]))
    if not is_fillable(made):
        return None
    registered = _registered(ev, frame, name, made)
    appended = _put_under(frame.code, name, made)
    if registered is None or appended is None:
        return None
    live = ev.live_blocks(frame)
    found = [(call, value) for call, value in appended if function.block_of[call] in live]
    if registered:
        return one(opened(made, [*registered, *(ev.value(frame, value) for _, value in found)]))
    block = function.block_of[stores[0]]
    if isinstance(made, DictionaryValue):
        put = _put_before(ev, frame, made, [call for call, _ in found], block, before)
        if put is not None:
            return one(put)
    if isinstance(made, Collection) and all(function.block_of[call] == block for call, _ in found):
        # After the list in its own block, only the earlier appends count; elsewhere, and in the next iteration, all do.
        until = before if before is not None and stores[0] < before and function.block_of[before] == block else None
        elements = [ev.value(frame, value) for call, value in found if until is None or call < until]
        return one(replace(made, elements=(*made.elements, *elements)))
    return one(opened(made, [ev.value(frame, value) for _, value in found]))


def _is_extension(function: s.Function, store: int, name: str) -> bool:
    """Whether a store is that of ``name += [...]``, which changes the list that it already refers to."""
    operation = function.operations[store]
    added = function.operations[operation.value] if isinstance(operation, s.Store) else None
    if not isinstance(added, s.Binary) or not added.inplace:
        return False
    base = function.operations[added.left]
    return isinstance(base, s.Load) and base.name == name


def is_fillable(made: Value | None) -> TypeGuard[Collection | DictionaryValue]:
    """Whether the value is a list or dictionary whose elements so far are all known."""
    if isinstance(made, DictionaryValue):
        return not made.open
    return isinstance(made, Collection) and made.kind == "list" and not made.open


def opened(made: Collection | DictionaryValue, added: list[Values]) -> Collection | DictionaryValue:
    """A list or dictionary to which some values are added an unknown number of times."""
    if isinstance(made, DictionaryValue):
        return DictionaryValue(made.items, open=True, each=join(*added))
    return Collection(made.kind, made.elements, open=True, each=join(*made.elements, *added))


def _registered(ev: Evaluator, frame: Frame, name: str, made: Collection | DictionaryValue) -> list[Values] | None:
    """What other functions of the file put into a collection that they see, if calls at import run them.

    None if they change it in another way, or if it is not known who calls them.
    """
    function, found = frame.code.function, list[Values]()
    wanted = None if function.kind == "module" else function
    for code in ev.names.changing(frame.ref.path).get(name, ()):
        if code.function is function or code.scope_of(name) is not wanted:
            continue
        put = _put_under(code, name, made)
        if put is None or wanted is not None:
            return None
        ref = FunctionRef(frame.ref.path, code.function.index)
        values = [ev.value(inner, value) for inner in frames_at_import(ev, ref) for _, value in put]
        if not values:
            return None
        found += values
    return found


def _put_under(code: Code, name: str, made: Collection | DictionaryValue) -> list[tuple[int, int]] | None:
    """What a function puts into a collection of this name, and where; None if it changes it in another way."""

    def is_it(f: s.Function, number: int) -> bool:
        load = f.operations[number]
        return isinstance(load, s.Load) and load.name == name

    return _appended(code, is_it) if isinstance(made, Collection) else _put(code, is_it)


def put_into_attribute(
    code: Code, receiver: str, name: str, made: Collection | DictionaryValue
) -> list[tuple[int, int]] | None:
    """What a method puts into an attribute of its receiver, and where; None if it changes it in another way."""

    def is_attribute(f: s.Function, number: int) -> bool:
        operation = f.operations[number]
        if not isinstance(operation, s.Attribute) or operation.name != name:
            return False
        base = f.operations[operation.base]
        return isinstance(base, s.Load) and base.name == receiver

    return _appended(code, is_attribute) if isinstance(made, Collection) else _put(code, is_attribute)


def _put_before(
    ev: Evaluator, frame: Frame, made: DictionaryValue, stores: list[int], block: int, before: int | None
) -> DictionaryValue | None:
    """A dictionary after the stores under constant keys that certainly precede an operation; None if there are others.

    Without an operation, a function that is defined inside reads it, at a time when all stores have been made.
    """
    code = frame.code
    here = code.function.block_of[before] if before is not None else None
    items = dict(made.items)
    for store in stores:
        place = code.function.block_of[store]
        if place == here and before is not None and store > before:
            if place != block:
                return None  # a different iteration may have made it
            continue
        if place not in (block, here) and not _passed_by_all(ev, frame, place, EXIT if here is None else here):
            return None
        kept = _stored(code, store)
        key = constant(ev.value(frame, kept[0])) if kept is not None else None
        if kept is None or key is None:
            return None
        if not (kept[2] and key.value in items):
            items[key.value] = ev.value(frame, kept[1])
    return DictionaryValue(tuple(items.items()))


def _passed_by_all(ev: Evaluator, frame: Frame, place: int, target: int) -> bool:
    """Whether every way through a function to a block leads through another one, where branches are decided."""
    closed = frame.code.closed(ev.decisions(frame))
    if place == ENTRY:
        return True
    return target not in frame.code.flow.reachable_by(
        ENTRY, lambda block, after: after != place and (block, after) not in closed
    )


def _stored(code: Code, number: int) -> tuple[int, int, bool] | None:
    """The key and the value that an operation stores, and whether it stores only if the key is missing."""
    operation = code.operations[number]
    if isinstance(operation, s.StoreSubscript):
        return operation.index, operation.value, False
    if isinstance(operation, s.Call) and len(operation.arguments) == 2:
        key, value = operation.arguments
        return None if key.star or value.star else (key.value, value.value, True)
    return None


def _put(code: Code, is_it: _Is) -> list[tuple[int, int]] | None:
    """The stores into a dictionary, each with its value; None if the dictionary is changed in any other way."""
    found: list[tuple[int, int]] = []
    for number, changed in code.changes:
        operation = code.operations[number]
        if not is_it(code.function, changed):
            continue
        if isinstance(operation, s.StoreSubscript):
            found.append((number, operation.value))
        elif number in code.defaulting:
            found.append(code.defaulting[number])
        elif not isinstance(operation, s.Delete) and getattr(operation, "name", "") not in ("pop", "clear"):
            return None
    return found


def _appended(code: Code, is_it: _Is) -> list[tuple[int, int]] | None:
    """What puts an element into a list, each with that element; None if it is changed in any other way.

    That is a call of `append`, or ``+= [...]`` for each element that is written out there.
    """
    found: list[tuple[int, int]] = []
    for number, changed in code.changes:
        if not is_it(code.function, changed):
            continue
        operation = code.operations[number]
        if isinstance(operation, s.Binary) and operation.operator == "+":
            added = code.operations[operation.right]
            if not isinstance(added, s.Display) or added.kind == "set" or added.starred:
                return None
            found += [(number, element) for element in added.elements]
        elif isinstance(operation, s.Attribute) and operation.name == "append" and number in code.appending:
            found.append(code.appending[number])
        else:
            return None
    return found
