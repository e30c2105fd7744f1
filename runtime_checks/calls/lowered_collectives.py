"""The collectives that a lowered module names, read from its operations: never from text, whose forms are many."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spmdlint.runtime_checks.calls.communication import (
    Assignment,
    AxisPart,
    Collective,
    Communication,
    Groups,
    along_axes,
    combined,
)

_REDUCTIONS = ("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter")
_OTHERS = ("stablehlo.all_to_all", "stablehlo.collective_permute", "stablehlo.collective_broadcast")
_NAMED = re.compile(r"stablehlo\.(?:all_reduce|all_gather|reduce_scatter|all_to_all|collective_\w+)\b")
_MESHES = "jaxlib.mlir.dialects.sdy"
_OPERATIONS = "jaxlib.mlir.dialects.stablehlo"


def lowered_communicates(operation: Any, text: str, process_of: Sequence[int]) -> Communication:
    """Whether a lowered module (an MLIR operation of StableHLO) names a collective between processes.

    ``text`` is the same module as text: most modules name none, and need not be walked through. ``process_of[i]`` is
    the process of the i-th device of the assignment. NO is not final: the partitioner may still insert collectives.
    """
    if not _NAMED.search(text):
        return Communication.NO
    try:
        attributes = operation.attributes
        replicas = _number(attributes["mhlo.num_replicas"]) if "mhlo.num_replicas" in attributes else 1
        assignment = Assignment(process_of, replicas)
        found = list(_operations(operation))
        meshes = {str(one.attributes["sym_name"]).strip('"'): one for one in found if one.name == "sdy.mesh"}
        named = (one for one in found if one.name in (*_REDUCTIONS, *_OTHERS))
        return combined(assignment.spanned(_collective(one, meshes)) for one in named)
    except Exception:  # bindings of another version of MLIR: the compiled module decides
        return Communication.UNKNOWN


def _operations(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region:
            for one in block.operations:
                yield one.operation
                yield from _operations(one.operation)


def _collective(operation: Any, meshes: Mapping[str, Any]) -> Collective:
    attributes = operation.attributes
    reduces = operation.name in _REDUCTIONS
    name = "source_target_pairs" if operation.name.endswith("permute") else "replica_groups"
    listed = hasattr(attributes[name], "is_splat")  # a tensor of numbers, otherwise axes of a mesh
    return Collective(
        _numbers(attributes[name]) if listed else _along_axes(attributes[name], meshes),
        channel="channel_handle" in attributes,
        flat=not listed or (reduces and "use_global_device_ids" in attributes),
        both=reduces,
    )


def _along_axes(attribute: Any, meshes: Mapping[str, Any]) -> Groups | None:
    operations = importlib.import_module(_OPERATIONS)
    given = operations.ReplicaGroupMeshAxesAttr(attribute)
    sizes, devices = _mesh(given.mesh, meshes)
    return along_axes(sizes, [_axis_part(operations, one) for one in given.axes], devices)


def _mesh(mesh: Any, meshes: Mapping[str, Any]) -> tuple[dict[str, int], list[int]]:
    """The sizes of the axes of a mesh, and its devices if they are not in the usual order."""
    if hasattr(mesh, "value"):  # the name of a mesh of the module
        sharding = importlib.import_module(_MESHES)
        named = sharding.MeshAttr(meshes[mesh.value].attributes["mesh"])
        axes = [sharding.MeshAxisAttr(one) for one in named.axes]
        return {axis.name: int(axis.size) for axis in axes}, [int(one) for one in named.device_ids]
    operations = importlib.import_module(_OPERATIONS)
    inline = operations.MeshAttr(mesh)
    axes = [operations.MeshAxisAttr(one) for one in inline.axes]
    devices = [] if inline.device_ids is None else [int(n) for n in _array(inline.device_ids)]
    return {axis.name: int(axis.size) for axis in axes}, devices


def _axis_part(operations: Any, attribute: Any) -> AxisPart:
    axis = operations.AxisRefAttr(attribute)
    if axis.sub_axis_info is None:
        return AxisPart(axis.name)
    part = operations.SubAxisInfoAttr(axis.sub_axis_info)
    return AxisPart(axis.name, int(part.pre_size), int(part.size))


def _numbers(dense: Any) -> list[list[int]]:
    rows = _array(dense)
    return [[int(n) for n in row] for row in (rows if rows.ndim == 2 else rows[None])] if rows.size else []


def _array(dense: Any) -> Any:
    import numpy as np

    return np.array(dense)


def _number(attribute: Any) -> int:
    return int(getattr(attribute, "value", attribute))
