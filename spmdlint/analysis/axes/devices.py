"""Device lists for a map or a mesh that contain the same device twice.

The evaluator has no values for devices, so they are distinguished by how they are written: ``devices[0]`` twice is one
device, if nothing assigns ``devices`` in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.values import External, Frame, Site, certain, constant
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

PARAMETER = "devices"
_DEPTH = 8
_SHAPES = ("reshape", "ravel", "flatten")


class RepeatedDevice(Struct, frozen=True):
    """A list that contains one device twice: where it is written, and the map or mesh that it is passed to."""

    site: Site
    user: Site
    library: str


def repeated_devices(evaluator: Evaluator) -> Iterator[RepeatedDevice]:
    """Every map and mesh that is certainly passed one device twice."""
    for ref in evaluator.project.functions():
        frame = evaluator.free_frame(ref)
        for number, operation in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            given = _given(evaluator, frame, operation)
            if given is None or expects_failure(evaluator, frame, number):
                continue
            library, value = given
            twice = _twice(evaluator, frame, value, _DEPTH)
            if twice is not None and not handles(evaluator, frame, number, "ValueError", "AssertionError"):
                yield RepeatedDevice(twice, Site(ref, number), library)


def _given(evaluator: Evaluator, frame: Frame, call: s.Call) -> tuple[str, int] | None:
    """The name of a map or mesh that a call, or a partial, applies, and the devices that are passed to it."""
    callee = certain(evaluator.value(frame, call.function))
    arguments = list(call.arguments)
    known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
    if known is not None and known.kind == "currying" and arguments:
        callee = certain(evaluator.value(frame, arguments.pop(0).value))
        known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
    if known is None or known.kind not in ("map", "mesh") or PARAMETER not in known.parameters:
        return None
    for argument in arguments:
        if argument.keyword == PARAMETER:
            return known.name, argument.value
    positional = [argument.value for argument in arguments if argument.keyword is None and not argument.star]
    position = known.positional.index(PARAMETER) if PARAMETER in known.positional else len(positional)
    return (known.name, positional[position]) if position < len(positional) else None


def _twice(evaluator: Evaluator, frame: Frame, number: int, depth: int) -> Site | None:
    """The site of the list that contains one device twice; None if there is none."""
    function = evaluator.function(frame)
    operation = function.operations[number]
    if depth == 0:
        return None
    if isinstance(operation, s.Load):
        stores = evaluator.reaching(frame, number, operation.name)
        if len(stores) != 1:
            return None
        return _twice(evaluator, frame, next(iter(stores)), depth - 1)
    if isinstance(operation, s.Store):
        return _twice(evaluator, frame, operation.value, depth - 1)
    if isinstance(operation, s.Display):
        if operation.starred:
            return None
        keys = [_key(evaluator, frame, element, _DEPTH) for element in operation.elements]
        devices = [key for key in keys if key is not None]
        if len(devices) > len(set(devices)):
            return Site(frame.ref, number)
        inside = (_twice(evaluator, frame, element, depth - 1) for element in operation.elements)
        return next((site for site in inside if site is not None), None)
    if isinstance(operation, s.Binary) and operation.operator == "*":
        return _multiplied(evaluator, frame, number, operation)
    if isinstance(operation, s.Call):
        inner = _wrapped(evaluator, frame, operation)
        return _twice(evaluator, frame, inner, depth - 1) if inner is not None else None
    return None


def _multiplied(evaluator: Evaluator, frame: Frame, number: int, operation: s.Binary) -> Site | None:
    function = evaluator.function(frame)
    for listed, times in ((operation.left, operation.right), (operation.right, operation.left)):
        display = function.operations[listed]
        count = constant(evaluator.value(frame, times))
        if isinstance(display, s.Display) and display.elements and count is not None:
            known = [_key(evaluator, frame, element, _DEPTH) for element in display.elements]
            if isinstance(count.value, int) and count.value > 1 and known[0] is not None:
                return Site(frame.ref, number)
    return None


def _wrapped(evaluator: Evaluator, frame: Frame, call: s.Call) -> int | None:
    """The value that an array or list is made from, or that an array is reshaped from."""
    function = evaluator.function(frame)
    callee = certain(evaluator.value(frame, call.function))
    if isinstance(callee, External) and callee.name in reading().arrays_of and call.arguments:
        return call.arguments[0].value
    method = function.operations[call.function]
    return method.base if isinstance(method, s.Attribute) and method.name in _SHAPES else None


def _key(evaluator: Evaluator, frame: Frame, number: int, depth: int) -> object:
    """A key for one device as written: a library's device list and an index into it; None for anything else."""
    operation = evaluator.function(frame).operations[number]
    if isinstance(operation, s.Subscript):
        index = constant(evaluator.value(frame, operation.index))
        base = _listing(evaluator, frame, operation.base, depth)
        if index is not None and isinstance(index.value, int) and base is not None:
            return (base, index.value)
    if isinstance(operation, s.Load) and depth:
        stores = evaluator.reaching(frame, number, operation.name)
        if len(stores) == 1:
            store = evaluator.function(frame).operations[next(iter(stores))]
            return _key(evaluator, frame, store.value, depth - 1) if isinstance(store, s.Store) else None
    return None


def _listing(evaluator: Evaluator, frame: Frame, number: int, depth: int) -> object:
    """The library function that lists devices, called without arguments here or in the only store to a name."""
    operation = evaluator.function(frame).operations[number]
    if isinstance(operation, s.Call):
        callee = certain(evaluator.value(frame, operation.function))
        lists = isinstance(callee, External) and callee.name in reading().devices | reading().local
        return callee if lists and not operation.arguments else None
    if isinstance(operation, s.Load) and depth:
        stores = evaluator.reaching(frame, number, operation.name)
        if len(stores) == 1:
            store = evaluator.function(frame).operations[next(iter(stores))]
            return _listing(evaluator, frame, store.value, depth - 1) if isinstance(store, s.Store) else None
    return None
