"""Where one element of a tuple, or one field of a record, is written: it is followed through names and returns.

Either every place where it may have been written is given, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.standard import COPIES
from spmdlint.analysis.evaluation.values import ClassValue, External, Frame, FunctionValue, constant, deed
from spmdlint.program import summary as s

Place = tuple[Frame, int]
_DEPTH = 5
_TREE = 256
"""The most places that are looked at in a tree."""
_MAKING = frozenset(("create", "dict"))
"""Functions, by the last part of their names, and methods of classes that make an object of their arguments."""


def elements(evaluator: Evaluator, frame: Frame, base: int, index: int) -> Iterator[Place]:
    """The places where the element of a tuple or list at an index is written; none unless the length is known."""

    def written(frame: Frame, number: int) -> Iterator[Place]:
        operation = evaluator.function(frame).operations[number]
        if not isinstance(operation, s.Display) or operation.starred or operation.kind == "set":
            return
        if -len(operation.elements) <= index < len(operation.elements):
            yield frame, operation.elements[index]

    return _followed(evaluator, frame, base, written, _DEPTH)


def written_out(evaluator: Evaluator, frame: Frame, base: int) -> Iterator[Place]:
    """The places where the elements of a tuple or list are written, all of them."""
    return _followed(evaluator, frame, base, _displayed, _DEPTH)


def _displayed(frame: Frame, number: int) -> Iterator[Place]:
    operation = frame.code.operations[number]
    if isinstance(operation, s.Display) and not operation.starred and operation.kind != "set":
        yield from ((frame, element) for element in operation.elements)


def in_rounds(evaluator: Evaluator, frame: Frame, loop: int, index: int | None = None) -> Iterator[Place]:
    """The places where the values that a loop iterates over are written.

    With ``index``, those of the item of a `zip` or `enumerate` at that index.
    """
    operations = evaluator.function(frame).operations
    step = operations[loop]
    if not isinstance(step, s.Next):
        return
    if index is None:
        yield from _listed(evaluator, frame, step.iterable)
        return
    call = operations[frame.code.root_of(step.iterable)]
    if not isinstance(call, s.Call) or any(argument.star for argument in call.arguments):
        return
    joins = evaluator.callee(frame, call)
    given = [argument.value for argument in call.arguments if argument.keyword is None]
    if deed(joins) == "zip" and 0 <= index < len(given):
        yield from _listed(evaluator, frame, given[index])
    elif deed(joins) == "enumerate" and index == 1 and given:
        yield from _listed(evaluator, frame, given[0])


def _listed(evaluator: Evaluator, frame: Frame, base: int) -> Iterator[Place]:
    def written(frame: Frame, number: int) -> Iterator[Place]:
        operation = frame.code.operations[number]
        if isinstance(operation, s.Collected) and operation.kind in ("list", "generator"):
            yield frame, operation.element
        else:
            yield from _displayed(frame, number)

    return _followed(evaluator, frame, base, written, _DEPTH)


def entries(evaluator: Evaluator, frame: Frame, base: int, key: object) -> Iterator[Place]:
    """The places where the value of a dictionary under a key is written."""

    def written(frame: Frame, number: int) -> Iterator[Place]:
        operation = evaluator.function(frame).operations[number]
        if isinstance(operation, s.Call) and deed(evaluator.callee(frame, operation)) == "dictionary":
            named = [argument.value for argument in operation.arguments if argument.keyword == key]
            copied = [argument.value for argument in operation.arguments if argument.keyword is None]
            if named:
                yield frame, named[0]
            elif not any(argument.star for argument in operation.arguments):  # what is spread there may have the key
                yield from (place for each in copied for place in entries(evaluator, frame, each, key))
        if not isinstance(operation, s.DictDisplay):
            return
        for each, value in reversed(tuple(zip(operation.keys, operation.values, strict=True))):
            if each is None:
                return  # what is spread there may have the key
            known = constant(evaluator.value(frame, each))
            if known is not None and known.value == key:
                yield frame, value
                return

    return _followed(evaluator, frame, base, written, _DEPTH)


def fields(evaluator: Evaluator, frame: Frame, base: int, name: str) -> Iterator[Place]:
    """The places where a field of a record (a dataclass or named tuple) is written: the calls that make the record."""

    def written(frame: Frame, number: int) -> Iterator[Place]:
        operation = evaluator.function(frame).operations[number]
        if not isinstance(operation, s.Call):
            return
        cls = evaluator.callee(frame, operation)
        names = evaluator.objects.field_names(cls) if isinstance(cls, ClassValue) else None
        if names is None:
            return
        for argument in operation.arguments:
            if argument.keyword == name:
                yield frame, argument.value
                return
        given = [argument.value for argument in operation.arguments if argument.keyword is None and not argument.star]
        if name in names and names.index(name) < len(given):
            yield frame, given[names.index(name)]

    return _followed(evaluator, frame, base, written, _DEPTH)


def changed_fields(evaluator: Evaluator, frame: Frame, base: int, name: str) -> Iterator[Place]:
    """The places where a copy is given a new value for a field: ``dataclasses.replace(config, seed=seed)``.

    These are not all the values that the field may have, only those that some copy has.
    """
    if name in evaluator.objects.changed_fields:
        yield from _changed(evaluator, frame, base, name, _DEPTH)


def _changed(evaluator: Evaluator, frame: Frame, number: int, name: str, depth: int) -> Iterator[Place]:
    operation = frame.code.operations[number]
    if depth == 0:
        return
    if isinstance(operation, s.Store):
        yield from _changed(evaluator, frame, operation.value, name, depth)
    elif isinstance(operation, s.Load):
        if frame.code.function.binds(operation.name):
            for store in sorted(evaluator.reaching(frame, number, operation.name)):
                yield from _changed(evaluator, frame, store, name, depth - 1)
    elif isinstance(operation, s.Call):
        if number in frame.code.calls_named(COPIES):
            yield from ((frame, argument.value) for argument in operation.arguments if argument.keyword == name)
            return
        for inner, value in _returned(evaluator, frame, operation):
            yield from _changed(evaluator, inner, value, name, depth - 1)


def _followed(
    evaluator: Evaluator, frame: Frame, number: int, written: Callable[[Frame, int], Iterator[Place]], depth: int
) -> Iterator[Place]:
    here = list(written(frame, number))
    if here or depth == 0:
        yield from here
        return
    function = evaluator.function(frame)
    operation = function.operations[number]
    if isinstance(operation, s.Store):
        yield from _followed(evaluator, frame, operation.value, written, depth)
    elif isinstance(operation, s.Load):
        if function.binds(operation.name):
            stores = sorted(evaluator.reaching(frame, number, operation.name))
            yield from _each(evaluator, ((frame, store) for store in stores), written, depth)
    else:
        yield from _each(evaluator, _returned(evaluator, frame, operation), written, depth)


def _each(
    evaluator: Evaluator, places: Iterable[Place], written: Callable[[Frame, int], Iterator[Place]], depth: int
) -> Iterator[Place]:
    found: list[Place] = []
    for frame, number in places:
        here = list(_followed(evaluator, frame, number, written, depth - 1))
        if not here:
            return
        found += here
    yield from found


def _returned(evaluator: Evaluator, frame: Frame, operation: s.Operation) -> list[Place]:
    """The places of what a call of functions of the project returns; of an iteration, what its generators yield."""
    iterated = operation.iterable if isinstance(operation, s.Next) else None
    call = frame.code.operations[frame.code.root_of(iterated)] if iterated is not None else operation
    if not isinstance(call, s.Call):
        return []
    found: list[Place] = []
    for made in ordered(evaluator.value(frame, call.function)):
        run, arguments = evaluator.through_partial(made, evaluator.arguments(frame, call))
        callee = evaluator.objects.called(run)
        if not isinstance(callee, FunctionValue):
            return []
        inner = evaluator.entered_frame(callee, arguments, frame.depth + 1)
        if inner is None or inner.code.function.generator is (iterated is None):
            return []
        yields = inner.code.of_kind(s.Yield)
        given = returns(evaluator, inner) if iterated is None else ((n, each.value) for n, each in yields)
        found += [(inner, value) for _, value in given if value is not None]
    return found


def returns(evaluator: Evaluator, frame: Frame) -> Iterator[tuple[int, int | None]]:
    """The reachable return statements of a function, each with the value that it returns, if any."""
    live = evaluator.live_blocks(frame)
    return ((number, each.value) for block, number, each in frame.code.each((s.Return,)) if block in live)


def tree(
    evaluator: Evaluator, frame: Frame, number: int, without: Callable[[Frame, int], bool] = lambda *_: False
) -> Iterator[tuple[Place, bool]]:
    """The places in a tree of dictionaries and tuples, from the top, and whether each is a leaf.

    Names are followed, and the project's own functions, except at places that ``without`` leaves out.
    """
    seen: set[Place] = set()
    pending = [(frame, number)]
    while pending and len(seen) < _TREE:
        place = pending.pop()
        if place not in seen and not without(*place):
            seen.add(place)
            inner = _inside(evaluator, *place)
            yield place, not inner
            pending += inner[::-1]


def _inside(evaluator: Evaluator, frame: Frame, number: int) -> list[Place]:
    operation = frame.code.operations[number]
    inner: list[int] = []
    if isinstance(operation, s.DictDisplay):
        inner += operation.values
    elif isinstance(operation, s.Store):
        inner += [operation.value]
    elif isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
        inner += [*sorted(evaluator.reaching(frame, number, operation.name)), *put_into(frame, [number])]
    elif isinstance(operation, s.Call):
        callee = evaluator.callee(frame, operation)
        if not isinstance(callee, External) or callee.name.rpartition(".")[2] not in _MAKING:
            return _returned(evaluator, frame, operation)
        inner += [argument.value for argument in operation.arguments]
    return [(frame, value) for value in inner]


def put_into(frame: Frame, lists: list[int]) -> list[int]:
    """The values put into these lists and dictionaries: a function that is given one is given its elements."""
    found: list[int] = []
    for number in lists:
        load = frame.code.operations[number]
        puts = frame.code.filling.get(load.name, ()) if isinstance(load, s.Load) else ()
        for put in puts:
            made = frame.code.operations[put]
            found += [argument.value for argument in made.arguments] if isinstance(made, s.Call) else []
            found += [made.value] if isinstance(made, s.StoreSubscript) else []
    return found
