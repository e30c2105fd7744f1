"""Maps and compiled functions that are restricted to this process, or told over which devices they run."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Member,
    Value,
    certain,
)
from spmdlint.knowledge.reading import reading
from spmdlint.knowledge.typing import typing_table

DEPTH = 24
_MESHES = ("jax.sharding.Mesh", "jax.make_mesh")
_SHAPED = ("jax.experimental.mesh_utils.create_device_mesh", "jax.make_mesh")
_PLACES = ("device", "backend", "devices")


def on_local_devices(value: Value, depth: int = DEPTH) -> bool:
    """Whether a map or jit is restricted to local devices, to a few listed ones, or to a named device or backend."""
    if not isinstance(value, Applied) or depth == 0:
        return False
    if value.name in reading().local | {reading().one_device} or _on_listed_devices(value) or _of_own_size(value):
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
    """Whether a mesh has one device, or as many as this process: with several processes, JAX refuses to make that."""
    if mesh.name not in _SHAPED:
        return False
    shapes = [certain(values) for values in (*mesh.arguments.positional[:1], *(v for _, v in mesh.arguments.keywords))]
    sizes = {certain(each) for shape in shapes if isinstance(shape, Collection) for each in shape.elements}
    own = any(isinstance(size, Applied) and size.name in typing_table().rows.local_count for size in sizes)
    return own or sizes == {Constant(1)}


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
        return sharding.name != reading().one_device
    if isinstance(sharding, Collection):
        return any(_spans(part) for element in sharding.elements for part in element)
    if isinstance(sharding, DictionaryValue):
        return any(_spans(part) for _, element in sharding.items for part in element)
    return True
