"""Comprehensions over what is known, evaluated round by round: permutations and tables are written so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis import folding
from spmdlint.analysis.standard import MAX_ELEMENTS, listed
from spmdlint.analysis.values import ANYTHING, Collection, DictionaryValue, Frame, Values, certain, constant, one, truth
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluate import Evaluator

_Round = dict[int, Values]
"""What each loop of a comprehension is at in one round, by the number of its :class:`summary.Next`."""


def collected(ev: Evaluator, frame: Frame, operation: s.Collected) -> Values:
    """What a comprehension makes."""
    if operation.kind == "generator":
        return ANYTHING
    rounds = _rounds(ev, frame, operation)
    if operation.kind == "dict":
        return ANYTHING if rounds is None else _dictionary(ev, frame, operation, rounds)
    if rounds is None:
        return one(Collection(operation.kind, (), open=True))
    return one(Collection(operation.kind, tuple(_value(ev, frame, operation.element, r) for r in rounds)))


def _dictionary(ev: Evaluator, frame: Frame, operation: s.Collected, rounds: list[_Round]) -> Values:
    assert operation.key is not None
    items: dict[object, Values] = {}
    for each in rounds:
        key = constant(_value(ev, frame, operation.key, each))
        if key is None:
            return ANYTHING
        items[key.value] = _value(ev, frame, operation.element, each)
    return one(DictionaryValue(tuple(items.items())))


def _rounds(ev: Evaluator, frame: Frame, operation: s.Collected) -> list[_Round] | None:
    """Every round; None where the loops are not known, are too many, or leave something out."""
    function = ev.function(frame)
    header = function.blocks[function.block_of[operation.loops[-1]]]
    bodies = {edge.target for edge in header.edges if edge.kind == "iterate"}
    if function.block_of[operation.element] not in bodies:
        return None
    found: list[_Round] = [{}]
    for loop in operation.loops:
        step = function.operations[loop]
        assert isinstance(step, s.Next)
        following: list[_Round] = []
        for each in found:
            elements = listed(_value(ev, frame, step.iterable, each))
            if elements is None or len(following) + len(elements) > MAX_ELEMENTS:
                return None
            following += [{**each, loop: element} for element in elements]
        found = following
    if len(operation.loops) > 1 and any(function.blocks[function.block_of[n]].test != n for n in operation.loops):
        return None
    return found


def _value(ev: Evaluator, frame: Frame, number: int, at: _Round) -> Values:
    """A value in one round. What does not depend on the loops is what it is outside of them."""
    if number in at:
        return at[number]
    function = ev.function(frame)
    operation = function.operations[number]
    if isinstance(operation, s.Load):
        stores = [function.operations[n] for n in function.stores.get(operation.name, ())]
        if "#" not in operation.name or len(stores) != 1 or not isinstance(stores[0], s.Store):
            return ev.value(frame, number)
        return _value(ev, frame, stores[0].value, at)
    if isinstance(operation, s.Item) and not operation.star:
        index = operation.index
        return ev.each(_value(ev, frame, operation.value, at), lambda base: ev.element(base, index))
    if isinstance(operation, s.Binary):
        left, right = (_value(ev, frame, n, at) for n in (operation.left, operation.right))
        return folding.binary(operation.operator, left, right)
    if isinstance(operation, s.Display) and not operation.starred:
        return one(Collection(operation.kind, tuple(_value(ev, frame, n, at) for n in operation.elements)))
    if isinstance(operation, s.Subscript):
        position = certain(_value(ev, frame, operation.index, at))
        known = constant(one(position)) if position is not None else None
        if known is None:
            return ANYTHING
        return ev.each(_value(ev, frame, operation.base, at), lambda base: ev.element(base, known.value))
    if isinstance(operation, s.Compare) and len(operation.operators) == 1:
        first, second = (_value(ev, frame, n, at) for n in operation.operands)
        return folding.binary(operation.operators[0], first, second)
    if isinstance(operation, s.IfExp):
        answer = truth(_value(ev, frame, operation.test, at))
        if answer is not None:
            return _value(ev, frame, operation.body if answer else operation.orelse, at)
    return ev.value(frame, number)
