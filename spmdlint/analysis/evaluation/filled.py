"""Lists that are filled by `append`: what their elements may be.

Where the list and all its appends stand in one block, every element is known by its place. Otherwise the list is open,
and ``each`` says what any of its elements is. A list that is changed in any other way may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.values import Collection, Frame, Values, certain, join, one
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_Is = Callable[[s.Function, int], bool]
"""Is an operation the collection in question: a load of its name, or of its attribute."""


def filled_name(ev: Evaluator, frame: Frame, name: str, values: Values, before: int | None = None) -> Values | None:
    """A list under a local or global name, as it is at the operation ``before``; None where it may be anything."""
    function = ev.function(frame)
    made = certain(values)
    stores = function.stores[name]
    if not isinstance(made, Collection) or made.kind != "list" or made.open or len(stores) != 1:
        return None
    if _changed_inside(ev, frame, function, name):
        return None
    appended = _appended(frame.code, lambda f, n: isinstance(load := f.operations[n], s.Load) and load.name == name)
    if appended is None:
        return None
    live = ev.live_blocks(frame)
    found = [(call, value) for call, value in appended if function.block_of[call] in live]
    block = function.block_of[stores[0]]
    if all(function.block_of[call] == block for call, _ in found):
        # Behind the list in its block, only what was appended before; elsewhere, and in another round, all.
        until = before if before is not None and stores[0] < before and function.block_of[before] == block else None
        elements = [ev.value(frame, value) for call, value in found if until is None or call < until]
        return one(replace(made, elements=(*made.elements, *elements)))
    return one(opened(made, [ev.value(frame, value) for _, value in found]))


def opened(made: Collection, added: list[Values]) -> Collection:
    """A list to which some values are added, nobody knows how often."""
    return Collection(made.kind, made.elements, open=True, each=join(*made.elements, *added))


def _changed_inside(ev: Evaluator, frame: Frame, function: s.Function, name: str) -> bool:
    """Does another function of the file that sees this name change its value in place."""
    wanted = None if function.kind == "module" else function
    return any(
        code.function is not function and code.scope_of(name) is wanted
        for code in ev.names.changing(frame.ref.path).get(name, ())
    )


def appended_to_attribute(code: Code, receiver: str, name: str) -> list[tuple[int, int]] | None:
    """The appends of a method to an attribute of its receiver; None where it changes that in another way."""

    def is_attribute(f: s.Function, number: int) -> bool:
        operation = f.operations[number]
        if not isinstance(operation, s.Attribute) or operation.name != name:
            return False
        base = f.operations[operation.base]
        return isinstance(base, s.Load) and base.name == receiver

    return _appended(code, is_attribute)


def _appended(code: Code, is_it: _Is) -> list[tuple[int, int]] | None:
    """The calls of `append` on a collection, and what they append; None where it is changed in any other way."""
    found: list[tuple[int, int]] = []
    for number, changed in code.changes:
        if not is_it(code.function, changed):
            continue
        operation = code.operations[number]
        if not isinstance(operation, s.Attribute) or operation.name != "append" or number not in code.appending:
            return None
        found.append(code.appending[number])
    return found
