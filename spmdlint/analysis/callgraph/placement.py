"""Shardings: over the devices of all processes, and whether they split an array or copy it."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, Called, Member, Value, Values

_DEPTH = 4
_MESH = "jax.sharding.Mesh"
_SHARDING = "jax.sharding.NamedSharding"
_SPEC = "jax.sharding.PartitionSpec"
_MADE_OF_ALL = ("jax.make_mesh", "jax.experimental.mesh_utils.create_device_mesh")
_ALL = "jax.devices"


def names_no_axis(ev: Evaluator, given: Value) -> bool:
    """Whether a sharding or spec names no axis: it places a copy on every device."""
    if not isinstance(given, Applied):
        return False
    if given.name == _SHARDING:
        return any(names_no_axis(ev, spec) for spec in ev.argument(given, "spec") or ())
    return given.name == _SPEC and not any(given.arguments.positional)


def over_all(ev: Evaluator, sharding: Value | None) -> bool:
    """Whether a value is a sharding over a mesh of all devices."""
    if not isinstance(sharding, Applied) or sharding.name != _SHARDING:
        return False
    meshes = ev.argument(sharding, "mesh")
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
