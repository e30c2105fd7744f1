"""Calls outside compiled functions that need all processes: they compute on, or transfer to, devices of several.

An operation of ``jax.numpy`` on one array works where the array is. Only an operation that combines its parts
communicates: most others are harmless on one process, and are not reported.
"""

from __future__ import annotations

from spmdlint.analysis.callgraph.locality import global_data
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, Called, Frame, Member, Value, Values, certain, constant
from spmdlint.program import summary as s

_DEPTH = 4
_PUT = "jax.device_put"
_NUMPY = "jax.numpy."
_REDUCTIONS = frozenset("all any argmax argmin average max mean median min prod std sum var".split())
_TOGETHER = frozenset(("concatenate", "vdot", "linalg.norm"))
_MESH = "jax.sharding.Mesh"
_SHARDING = "jax.sharding.NamedSharding"
_SPEC = "jax.sharding.PartitionSpec"
_MADE_OF_ALL = ("jax.make_mesh", "jax.experimental.mesh_utils.create_device_mesh")
_ALL = "jax.devices"


def computes_everywhere(ev: Evaluator, frame: Frame, call: s.Call, name: str) -> bool:
    """Whether a call of a library function, by its name, certainly needs the processes of all devices."""
    if name == _PUT:
        place = passed(call, "device", ("x", "device"))
        sharding = certain(ev.value(frame, place)) if place is not None else None
        return isinstance(sharding, Applied) and _over_all(ev, sharding)
    if not name.startswith(_NUMPY) or not call.arguments or call.arguments[0].star:
        return False
    function = name.removeprefix(_NUMPY)
    if function not in _REDUCTIONS and function not in _TOGETHER:
        return False
    axis = passed(call, "axis", ("a", "axis"))
    along = constant(ev.value(frame, axis)) if axis is not None else None
    if function in _REDUCTIONS and axis is not None and (along is None or along.value not in (None, 0)):
        return False  # along a dimension that is not split over processes
    return _is_spread(ev, frame, call.arguments[0].value, _DEPTH)


def _is_spread(ev: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether the processes certainly hold different parts of an array, or of one array of a list."""
    operation = frame.code.operations[frame.code.root_of(number)]
    if isinstance(operation, s.Display):
        return depth > 0 and any(_is_spread(ev, frame, part, depth - 1) for part in operation.elements)
    return global_data(ev, frame, number) and not _is_replicated(ev, frame, operation)


def _is_replicated(ev: Evaluator, frame: Frame, made: s.Operation) -> bool:
    """Whether an array is made with a spec that names no axis: every process then holds all of it."""
    given = [argument.value for argument in made.arguments] if isinstance(made, s.Call) else []
    return any(names_no_axis(ev, value) for number in given for value in ev.value(frame, number))


def names_no_axis(ev: Evaluator, given: Value) -> bool:
    """Whether a sharding or spec names no axis: it places a copy on every device."""
    if not isinstance(given, Applied):
        return False
    if given.name == _SHARDING:
        return any(names_no_axis(ev, spec) for spec in ev.argument(given, "spec") or ())
    return given.name == _SPEC and not any(given.arguments.positional)


def _over_all(ev: Evaluator, sharding: Applied) -> bool:
    """Whether a sharding is over a mesh of all devices."""
    meshes = ev.argument(sharding, "mesh") if sharding.name == _SHARDING else None
    return bool(meshes) and all(_of_all(mesh, _DEPTH) for mesh in ordered(meshes or frozenset()))


def _of_all(devices: Value, depth: int) -> bool:
    """Whether these are all devices, in a mesh or in any other arrangement."""
    if isinstance(devices, Called) and isinstance(devices.function, Member) and devices.function.name == "reshape":
        return depth > 0 and _of_all(devices.function.base, depth - 1)
    if not isinstance(devices, Applied) or depth == 0:
        return False
    if devices.name == _ALL:
        return not devices.arguments.positional and not devices.arguments.keywords
    if devices.name in _MADE_OF_ALL:
        return devices.arguments.keyword("devices") is None
    given: Values | None = devices.arguments.keyword("devices")
    if given is None and devices.arguments.positional:
        given = devices.arguments.positional[0]
    arranged = devices.name == _MESH or devices.name.startswith("numpy.")
    return arranged and bool(given) and all(_of_all(value, depth - 1) for value in ordered(given or frozenset()))
