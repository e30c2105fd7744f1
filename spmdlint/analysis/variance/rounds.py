"""The element of a loop over a generator of the project: each ``yield`` of the generator is examined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.elements import returns
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through
from spmdlint.analysis.evaluation.values import Constant, External, Frame, Free, FunctionValue, Instance, Site, certain
from spmdlint.analysis.variance.element import elsewhere
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.truth import of_truth
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.summary import EXIT

_NONE = Constant(None)


def has_no_end(origins: Origins, frame: Frame, bound: int) -> bool:
    """Whether a bound is None, or a parameter that is None by default and that no known call passes."""
    value = certain(origins.ev.value(frame, bound))
    if not isinstance(value, Free):
        return value == _NONE
    home = origins.ev.free_frame(value.ref)
    formal = next((each for each in home.code.function.formals if each.name == value.name), None)
    if formal is None or not formal.default or origins.reach.callers.get(value.ref):
        return False
    default = origins.ev.default(value.ref, home.outer, value.name)
    return default is not None and certain(default) == _NONE


def left_early(content: Origins, frame: Frame, places: Sequence[int], use: int | None, name: str) -> Reason | None:
    """Why stores at these places are from a different iteration on some processes, for a use in block ``use``.

    A use of None is after the function. ``name`` describes in words what they store to.
    """
    text = f"in which iteration {name} was stored depends on this"
    function = frame.code.function
    blocks = {function.block_of[place] for place in places}
    for header, body in frame.code.flow.loops.items():
        if use in body or body.isdisjoint(blocks):
            continue
        for block, test in exits(frame.code.flow, header):
            found = of_truth(content, frame, test) if block in content.ev.live_blocks(frame) else None
            if found is not None:
                return found.then(Site(frame.ref, test), text)
    return None


def of_loop(frame: Frame, store: int) -> bool:
    """Whether a store binds the element of a loop, or a part of it: a different value in each iteration."""
    operation = frame.code.operations[store]
    while isinstance(operation, (s.Store, s.Item)):
        operation = frame.code.operations[operation.value]
    return isinstance(operation, s.Next)


def exits(flow: Flow, header: int) -> Iterator[tuple[int, int]]:
    """The blocks of a loop that leave it in one arm and stay in it in the other, with their conditions."""
    for number in sorted(flow.loop_body(header)):
        test = flow.function.blocks[number].test
        if test is None or isinstance(flow.function.operations[test], (s.Next, s.Matches, s.Caught)):
            continue
        if flow.leaves(number, header) and not _fails(flow, number, header):
            yield number, test


def _fails(flow: Flow, block: int, header: int) -> bool:
    """Whether the arm that leaves a loop only reaches an exception, so that nobody sees what the loop has stored."""
    arms = [edge.target for edge in flow.function.blocks[block].edges if edge.kind in ("true", "false")]
    body = flow.loop_body(header)
    return all(EXIT not in flow.reachable(arm) for arm in arms if arm not in body and arm != header)


_DEPTH = 4
"""The most calls of ``zip``, ``enumerate`` and the like inside one another."""


def of_round(
    origins: Origins, frame: Frame, number: int, index: object = None, *, shared: bool = False
) -> Reason | None:
    """Why the element that an operation gets from a loop, or its part at an index, has the property.

    ``shared``: the elements of a value that has the property have it as well.
    """
    operation = frame.code.operations[number]
    iterable = _taken_from(
        origins, frame, frame.code.operations[operation.value] if isinstance(operation, s.Item) else operation
    )
    if iterable is None:
        return None
    place = operation.index if isinstance(operation, s.Item) else None
    taken, path = _innermost(origins, frame, iterable, [p for p in (place, index) if p is not None])
    places = chain([(frame, taken)], elsewhere(origins, frame, taken))
    return next((r for p in places if (r := _yielded(origins, *p, path, _DEPTH, shared=shared)) is not None), None)


def _taken_from(origins: Origins, frame: Frame, operation: s.Operation) -> int | None:
    """The iterable of which an operation takes an element: that of a loop, or what is passed to `next`."""
    if not isinstance(operation, s.Call) or len(operation.arguments) not in (1, 2):
        return operation.iterable if isinstance(operation, s.Next) else None
    taken = origins.ev.callee(frame, operation) == External(reading().next)
    return operation.arguments[0].value if taken else None


def side_by_side(origins: Origins, frame: Frame, operation: s.Item) -> int | None:
    """The iterable that gives a part of each element of a loop: ``y`` in ``for i, (x, _) in enumerate(zip(y, z))``."""
    path: list[object] = []
    part: s.Operation = operation
    while isinstance(part, s.Item):
        path.insert(0, part.index)
        part = frame.code.operations[part.value]
    number = _taken_from(origins, frame, part)
    for _ in range(_DEPTH):  # as a name may be wrapped in itself: it = tqdm(it)
        if number is None or not path:  # a whole element may also differ by what was done to the list it is in
            return number
        number, path = _inside(origins, frame, number, path) or (None, path)
    return number if not path else None


def _innermost(origins: Origins, frame: Frame, iterable: int, path: list[object]) -> tuple[int, list[object]]:
    """What ``zip``, ``enumerate`` and the like in a function take the elements from, and the remaining path."""
    for _ in range(_DEPTH):
        inner = _inside(origins, frame, iterable, path)
        if inner is None:
            break
        iterable, path = inner
    return iterable, path


def _yielded(
    origins: Origins, frame: Frame, iterable: int, path: list[object], depth: int, *, shared: bool
) -> Reason | None:
    """Why what an iterable of the project yields has the property, at the end of a path of indices."""
    iterable, path = _innermost(origins, frame, iterable, path)
    root = frame.code.root_of(iterable)
    call = frame.code.operations[root]
    if depth == 0:
        return None
    ask = partial(_of_yields, origins, path=path, depth=depth, shared=shared)
    if isinstance(call, s.Call):
        for callee in origins.callees(frame, call):
            if isinstance(callee, FunctionValue):
                return origins.in_call(frame, root, call, callee, ask)
    for value in ordered(origins.ev.value(frame, root)):
        if isinstance(value, Instance):
            method = origins.ev.objects.generator(value, "__iter__")
            if method is not None:
                return ask(origins.ev.free_frame(method.ref))
    return None


def _inside(origins: Origins, frame: Frame, iterable: int, path: list[object]) -> tuple[int, list[object]] | None:
    """What a library's function takes the elements from that it gives, and the remaining path within one of those."""
    call = frame.code.operations[frame.code.root_of(iterable)]
    callee = origins.ev.callee(frame, call)
    if not isinstance(call, s.Call) or not isinstance(callee, External):
        return None
    given = [argument.value for argument in call.arguments if argument.keyword is None and not argument.star]
    first, joins = path[0] if path else None, elements().get(callee.name)
    if joins == "zip":
        return (given[first], path[1:]) if isinstance(first, int) and first < len(given) else None
    if joins == "enumerate":
        return (given[0], path[1:]) if first == 1 and given else None
    kept = through(origins.ev.knowledge, callee.name, call, "batches")
    return (kept[0], path) if len(kept) == 1 else None


def _of_yields(origins: Origins, frame: Frame, path: list[object], depth: int, *, shared: bool) -> Reason | None:
    """Why what a generator yields, or what an iterator that a function returns gives, has the property."""
    operations = frame.code.operations
    if not frame.code.function.generator:
        ways = [value for _, value in returns(origins.ev, frame) if value is not None]
        return origins.all_of(_yielded(origins, frame, value, path, depth - 1, shared=shared) for value in ways)
    found: list[Reason | None] = []
    for _, yielded in frame.code.of_kind(s.Yield):
        value = yielded.value
        if yielded.delegate and value is not None:
            inner = _yielded(origins, frame, value, path, depth - 1, shared=shared)
            found.append(inner or (origins.why(frame, value) if shared else None))
            continue
        for index in path:
            made = operations[frame.code.root_of(value)] if value is not None else None
            if not isinstance(made, s.Display) or not isinstance(index, int) or index >= len(made.elements):
                value = None
                break
            value = made.elements[index]
        if value is not None:
            text = f"{frame.code.function.name}() yields it"
            found.append(origins.step(frame, value, text, origins.why(frame, value)))
    return origins.all_of(found)
