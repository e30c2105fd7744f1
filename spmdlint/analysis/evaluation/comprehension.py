"""Evaluates comprehensions over known values, iteration by iteration: permutations and tables are written this way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation import folding
from spmdlint.analysis.evaluation.standard import MAX_ELEMENTS, listed
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Arguments,
    Collection,
    DictionaryValue,
    Frame,
    Site,
    Values,
    certain,
    constant,
    element_at,
    one,
    truth,
)
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

MAX_DEPTH = 11
"""Calls in a comprehension are followed only in frames less deep than this."""
_Round = dict[int, Values]
"""The value of each loop variable in one iteration, by the number of the loop's :class:`summary.Next`."""


def collected(ev: Evaluator, frame: Frame, operation: s.Collected, at: _Round | None = None) -> Values:
    """The result of a comprehension, in one iteration of those around it; a generator is known fully or not at all."""
    rounds = _rounds(ev, frame, operation, at or {})
    if rounds is None and operation.kind == "generator":
        return ANYTHING
    if operation.kind == "dict":
        if rounds is not None:
            return _dictionary(ev, frame, operation, rounds)
        return one(DictionaryValue((), open=True, each=ev.value(frame, operation.element)))
    if rounds is None:
        return one(Collection(operation.kind, (), open=True, each=ev.value(frame, operation.element)))
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


def _rounds(ev: Evaluator, frame: Frame, operation: s.Collected, at: _Round) -> list[_Round] | None:
    """Every iteration; None if the loops are not known, have too many iterations, or leave something out."""
    function = ev.function(frame)
    header = function.blocks[function.block_of[operation.loops[-1]]]
    bodies = [edge.target for edge in header.edges if edge.kind == "iterate"]
    wanted = function.block_of[operation.element]
    always = any(_runs_to(function, body, wanted) for body in bodies)
    if not always and (len(operation.loops) > 1 or len(bodies) != 1):
        return None
    found = [at]
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
    return found if always else _kept(ev, frame, found, function.block_of[operation.loops[-1]], bodies[0], wanted)


def _kept(
    ev: Evaluator, frame: Frame, rounds: list[_Round], header: int, start: int, wanted: int
) -> list[_Round] | None:
    """The iterations that the conditions of a comprehension keep; None if a condition is not known."""
    found: list[_Round] = []
    for each in rounds:
        kept = _comes_to(ev, frame, each, header, start, wanted)
        if kept is None:
            return None
        if kept:
            found.append(each)
    return found


def _comes_to(ev: Evaluator, frame: Frame, at: _Round, header: int, start: int, wanted: int) -> bool | None:
    """Whether one iteration leads from one block to another, by its conditions; ``header`` starts the next one."""
    function = ev.function(frame)
    seen: set[int] = set()
    while start != wanted:
        if start == header:
            return False
        if start in seen:
            return None
        seen.add(start)
        block = function.blocks[start]
        ways = {edge.kind: edge.target for edge in block.edges if edge.kind != "except"}
        if block.test is not None and {"true", "false"} == set(ways):
            answer = truth(_value(ev, frame, block.test, at))
            if answer is None:
                return None
            start = ways["true" if answer else "false"]
        elif len(ways) == 1 and block.test is None:
            start = next(iter(ways.values()))
        else:
            return None  # a nested comprehension in the condition
    return True


def _runs_to(function: s.Function, start: int, wanted: int) -> bool:
    """Whether every iteration leads from one block to another: no condition lies between, only other comprehensions."""
    seen: set[int] = set()
    while start != wanted and start not in seen:
        seen.add(start)
        edges = [edge for edge in function.blocks[start].edges if edge.kind != "except"]
        after = [edge.target for edge in edges if edge.kind != "iterate"]
        if len(after) != 1:
            return False
        start = after[0]
    return start == wanted


def _value(ev: Evaluator, frame: Frame, number: int, at: _Round) -> Values:
    """A value in one iteration. A value that does not depend on the loops is the same as outside them."""
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
        return ev.each(_value(ev, frame, operation.value, at), lambda base: element_at(base, index))
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
        return ev.each(_value(ev, frame, operation.base, at), lambda base: element_at(base, known.value))
    if isinstance(operation, s.Compare) and len(operation.operators) == 1:
        first, second = (_value(ev, frame, n, at) for n in operation.operands)
        return folding.binary(operation.operators[0], first, second)
    if isinstance(operation, s.IfExp):
        answer = truth(_value(ev, frame, operation.test, at))
        if answer is not None:
            return _value(ev, frame, operation.body if answer else operation.orelse, at)
    if isinstance(operation, s.Collected):
        return collected(ev, frame, operation, at)
    if isinstance(operation, s.Call) and not any(argument.star for argument in operation.arguments):
        return _called(ev, frame, number, operation, at)
    return ev.value(frame, number)


def _called(ev: Evaluator, frame: Frame, number: int, call: s.Call, at: _Round) -> Values:
    """The result of a call of a Python or project function in one iteration."""
    given = [(argument.keyword, _value(ev, frame, argument.value, at)) for argument in call.arguments]
    arguments = Arguments(
        tuple(values for name, values in given if name is None),
        tuple((name, values) for name, values in given if name is not None),
    )
    callees = ev.value(frame, call.function)
    if frame.depth >= MAX_DEPTH:
        return ANYTHING
    return ev.each(callees, lambda callee: ev.call(callee, arguments, Site(frame.ref, number), frame))
