"""The extent of arrays: those on one process alone, and those over the devices of several."""

from __future__ import annotations

from collections.abc import Callable

from spmdlint.analysis.callgraph.placement import over_all
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Value,
    certain,
)
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

DEPTH = 24
EAGER = ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.image.")
"""What computes where its arrays are, if it is called outside of compiled functions."""
_ONE_DEVICE = "jax.sharding.SingleDeviceSharding"
_MESHES = ("jax.sharding.Mesh", "jax.make_mesh")
_PASSING = ("builtins.enumerate", "builtins.iter")
_SHAPED = ("jax.experimental.mesh_utils.create_device_mesh", "jax.make_mesh")
_PLACES = ("device", "backend", "devices")


def on_local_devices(value: Value, depth: int = DEPTH) -> bool:
    """Whether a map or jit is restricted to local devices, to a few listed ones, or to a named device or backend."""
    if not isinstance(value, Applied) or depth == 0:
        return False
    if value.name in ("jax.local_devices", _ONE_DEVICE) or _on_listed_devices(value) or _of_own_size(value):
        return True
    inside = [*value.arguments.positional, *(v for _, v in value.arguments.keywords)]
    for name, values in value.arguments.keywords:
        if name in ("device", "backend") and all(isinstance(v, (Applied, Member, External)) for v in values):
            return True
        if name in _PLACES and any(getattr(v, "value", None) == "cpu" for v in values):
            return True
    parts = [part for values in inside for part in values]
    parts += [p for part in parts if isinstance(part, Collection) for e in part.elements for p in e]
    return any(on_local_devices(part, depth - 1) for part in parts)


def _on_listed_devices(mesh: Applied) -> bool:
    """Whether a mesh is of devices that are listed one by one: processes that own none of them do not take part."""
    if mesh.name not in _MESHES:
        return False
    given = mesh.arguments.keyword("devices")
    if given is None and mesh.name == _MESHES[0] and mesh.arguments.positional:
        given = mesh.arguments.positional[0]
    return given is not None and bool(given) and all(map(_is_written_out, given))


def _of_own_size(mesh: Applied) -> bool:
    """Whether a mesh has as many devices as this process: with several processes, JAX refuses to make it."""
    if mesh.name not in _SHAPED:
        return False
    shapes = [certain(values) for values in (*mesh.arguments.positional[:1], *(v for _, v in mesh.arguments.keywords))]
    sizes = [certain(each) for shape in shapes if isinstance(shape, Collection) for each in shape.elements]
    return any(isinstance(size, Applied) and size.name == "jax.local_device_count" for size in sizes)


def _is_written_out(devices: Value) -> bool:
    if isinstance(devices, Applied) and devices.name.startswith("numpy.") and len(devices.arguments.positional) == 1:
        return all(map(_is_written_out, devices.arguments.positional[0]))
    return isinstance(devices, Collection) and bool(devices.elements) and not devices.open


def sharded(evaluator: Evaluator, value: Applied) -> bool:
    """Whether a jit is given shardings over devices for its inputs or outputs."""
    for parameter in ("in_shardings", "out_shardings"):
        given = evaluator.argument(value, parameter)
        if given is not None and any(_spans(part) for part in given):
            return True
    return False


def _spans(sharding: Value) -> bool:
    """Whether the value is a sharding or a pytree of shardings; the sharding of a single device does not count."""
    if isinstance(sharding, Constant):
        return False
    if isinstance(sharding, Applied):
        return sharding.name != _ONE_DEVICE
    if isinstance(sharding, Collection):
        return any(_spans(part) for element in sharding.elements for part in element)
    if isinstance(sharding, DictionaryValue):
        return any(_spans(part) for _, element in sharding.items for part in element)
    return True


def everywhere(
    evaluator: Evaluator,
    frame: Frame,
    number: int,
    depth: int,
    says: Callable[[s.Operation, int], bool],
    seen: set[int] | None = None,
) -> bool:
    """Whether ``says`` holds for every operation that may make a value, through names and elements.

    An operation that is already in ``seen``, reached again in a loop, does not count against it.
    """
    if depth == 0:
        return False
    seen = set() if seen is None else seen
    if number in seen:
        return True
    seen.add(number)
    operation = evaluator.function(frame).operations[number]
    if isinstance(operation, s.Load):
        stores = evaluator.reaching(frame, number, operation.name)
        return bool(stores) and all(everywhere(evaluator, frame, store, depth, says, seen) for store in stores)
    if isinstance(operation, (s.Item, s.Store)):
        return everywhere(evaluator, frame, operation.value, depth - 1, says, seen)
    if isinstance(operation, s.Subscript):
        return everywhere(evaluator, frame, operation.base, depth - 1, says, seen)
    if isinstance(operation, s.Collected):
        return everywhere(evaluator, frame, operation.element, depth - 1, says, seen)
    return says(operation, depth)


def global_data(evaluator: Evaluator, frame: Frame, number: int, depth: int = DEPTH) -> bool:
    """Whether a value was certainly just made as an array over the devices of several processes, or a tree of them."""

    def says(operation: s.Operation, depth: int) -> bool:
        if isinstance(operation, s.Next):
            return _gives_global(evaluator, frame, operation.iterable, depth - 1)
        if isinstance(operation, (s.Display, s.DictDisplay)):
            parts = operation.elements if isinstance(operation, s.Display) else operation.values
            return bool(parts) and all(global_data(evaluator, frame, part, depth - 1) for part in parts)
        return isinstance(operation, s.Call) and makes_global(evaluator, frame, operation, depth)

    return everywhere(evaluator, frame, number, depth, says)


def makes_global(evaluator: Evaluator, frame: Frame, call: s.Call, depth: int) -> bool:
    """Whether a call makes such an array, or a tree of them."""
    callees = evaluator.value(frame, call.function)
    if any(_makes_global(evaluator, callee, depth) for callee in callees):
        return True
    for callee in ordered(callees):
        known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is None or not call.arguments:
            continue
        if known.name in reading().makers:
            place = passed(call, reading().makers[known.name][0], known.positional)
            return place is not None and over_all(evaluator, certain(evaluator.value(frame, place)))
        if known.kind == "apply":
            mapped = evaluator.value(frame, call.arguments[0].value)
            return any(_makes_global(evaluator, value, depth) for value in mapped)
    return False


def _gives_global(evaluator: Evaluator, frame: Frame, iterable: int, depth: int) -> bool:
    """Whether iterating over a value gives such arrays: from a generator, or from an object of the project."""
    number = frame.code.root_of(iterable)
    call = frame.code.operations[number]
    makers: list[Value] = []
    for callee in ordered(evaluator.value(frame, call.function)) if isinstance(call, s.Call) else ():
        if isinstance(callee, External) and callee.name in _PASSING and isinstance(call, s.Call) and call.arguments:
            return depth > 0 and _gives_global(evaluator, frame, call.arguments[0].value, depth - 1)
        makers.append(callee)
    for value in evaluator.value(frame, number):
        if isinstance(value, Instance):
            makers += evaluator.objects.attribute(value, "__next__") or evaluator.objects.attribute(value, "__iter__")
    functions = [maker for maker in makers if isinstance(maker, FunctionValue)]
    return bool(functions) and depth > 0 and all(_each_is_global(evaluator, each, depth) for each in functions)


def _each_is_global(evaluator: Evaluator, function: FunctionValue, depth: int) -> bool:
    """Whether everything that a generator yields, or ``__next__`` returns, is such an array."""
    inner = evaluator.free_frame(function.ref)
    yields = evaluator.project.function(function.ref).generator
    if not yields:
        returned = [given.value for _, given in inner.code.of_kind(s.Return)]
        return bool(returned) and all(n is not None and global_data(evaluator, inner, n, depth - 2) for n in returned)
    yielded = [given for _, given in inner.code.of_kind(s.Yield)]
    return bool(yielded) and all(_yields_global(evaluator, inner, each, depth - 2) for each in yielded)


def _yields_global(evaluator: Evaluator, frame: Frame, given: s.Yield, depth: int) -> bool:
    judged = _gives_global if given.delegate else global_data
    return given.value is not None and judged(evaluator, frame, given.value, depth)


def _makes_global(evaluator: Evaluator, callee: Value, depth: int) -> bool:
    """Whether a function returns such an array: a library function, its partial, or a function that returns one."""
    if isinstance(callee, External):
        known = evaluator.knowledge.get(callee.name)
        return known is not None and known.gives_global
    if isinstance(callee, Applied):
        first = callee.arguments.positional[0] if callee.arguments.positional else frozenset()
        known = evaluator.knowledge.get(callee.name)
        partial = known is not None and known.kind == "currying"
        return partial and any(_makes_global(evaluator, value, depth - 1) for value in first if depth)
    if isinstance(callee, FunctionValue) and depth:
        inner = evaluator.free_frame(callee.ref)
        operations = evaluator.function(inner).operations
        returned = [o.value for o in operations if isinstance(o, s.Return) and o.value is not None]
        return bool(returned) and all(
            global_data(evaluator, inner, value, depth - 2) for value in returned if depth > 2
        )
    return False
