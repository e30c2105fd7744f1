"""Whether a program communicates between processes: from the groups of devices that its collectives join.

They are read from HLO text, as jaxlib has no other view of the groups of a compiled module; a lowered one is converted.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

Groups = Sequence[Sequence[int]]


class Communication(Enum):
    """Whether a program communicates between processes.

    UNKNOWN is an answer of its own: nothing can be proven from a call that may stay within its process.
    """

    NO = "no"
    YES = "yes"
    UNKNOWN = "unknown"


def combined(answers: Iterable[Communication]) -> Communication:
    """The answer for a program with several collectives; without any it is NO."""
    result = Communication.NO
    for answer in answers:
        if answer is Communication.YES:
            return answer
        if answer is Communication.UNKNOWN:
            result = answer
    return result


def _spanned(grid: Any, groups: Groups | None, *, channel: bool, flat: bool, both: bool) -> Communication:
    """Whether the devices of one group of a collective belong to several processes.

    ``grid`` has the process of each device by replica and partition, None if it cannot be. ``groups`` are None if they
    cannot be read; no group at all means one with all devices. With ``flat`` their numbers are places in the device
    assignment. Otherwise XLA counts replicas if the collective has no channel, and partitions if it has one; ``both``
    is the combination of the two that reductions with a channel use.
    """
    if groups is None or grid is None:
        return Communication.UNKNOWN
    # Which groups there are several times, what their numbers count, and the devices of each of these.
    if flat:
        counted = grid.reshape(1, -1, 1)
    elif channel and both:
        counted = grid[None]
    else:
        counted = (grid if channel else grid.T)[:, :, None]
    inside = [[number for number in group if number >= 0] for group in groups]
    try:
        found = [one[group] for one in counted for group in inside or [list(range(len(one)))]]
    except IndexError:
        return Communication.UNKNOWN
    return Communication.YES if any(np.ptp(one) > 0 for one in found if one.size) else Communication.NO


@dataclass(frozen=True, slots=True)
class AxisPart:
    """An axis of a mesh, or the part of it of this ``size`` below the first ``before`` ways; 0 is the whole axis."""

    name: str
    before: int = 1
    size: int = 0


def along_axes(sizes: Mapping[str, int], parts: Sequence[AxisPart], devices: Sequence[int] = ()) -> Groups | None:
    """The groups of devices that differ only in some axes of a mesh, in row-major order; None if that is impossible.

    ``devices`` are the devices of the mesh, if not in the usual order.
    """
    split: list[tuple[int, bool]] = []  # the sizes of the parts of all axes in order, and whether each is joined
    for name, size in sizes.items():
        wanted = sorted((part for part in parts if part.name == name), key=lambda part: part.before)
        done = 1
        for part in wanted:
            inside = part.size or size
            if part.before < done or part.before % done or size % (part.before * inside):
                return None
            split += [(part.before // done, False), (inside, True)]
            done = part.before * inside
        split.append((size // done, False))
    shape = [size for size, _ in split]
    many = math.prod(shape)
    if not parts or any(part.name not in sizes for part in parts) or (devices and len(devices) != many):
        return None
    axes = sorted(range(len(split)), key=lambda axis: split[axis][1])  # those that are joined come last
    numbers = np.reshape(devices or range(many), shape).transpose(axes)
    groups: Groups = numbers.reshape(-1, math.prod(size for size, joined in split if joined)).tolist()
    return groups


def iota(shape: Sequence[int], order: Sequence[int] = ()) -> list[int]:
    """XLA's ``[shape]T(order)``: the numbers from 0 in this shape, transposed, in a row."""
    numbers: list[int] = np.arange(math.prod(shape)).reshape(shape).transpose(order or None).ravel().tolist()
    return numbers


def cut(numbers: Sequence[int], rows: int, columns: int) -> Groups | None:
    """So many groups of so many numbers each, or None if that is not all of them."""
    return np.reshape(numbers, (rows, columns)).tolist() if len(numbers) == rows * columns else None


_COLLECTIVE = re.compile(
    r"= .*?\b(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute"
    r"|collective-broadcast|send|recv)(?:-start)?\("
)
_REDUCTIONS_OF_HLO = ("all-reduce", "all-gather", "reduce-scatter")
_REPLICAS = re.compile(r"\AHloModule [^\n]*\breplica_count=(\d+)")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d,]*\},?)*)\}")
_ONE_LISTED = re.compile(r"\{([\d,]*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(
    r"replica_groups=@?mesh\[([^\]]*)\]"
    r"(?:, ?device_ids=\((?:\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]*))\))? ?\{([^}]*)\}"
)
_AXIS_SIZE = re.compile(r"['\"]([^'\"]+)['\"] ?= ?(\d+)")
_AXIS = re.compile(r"['\"]([^'\"]+)['\"](?::\((\d+)\)(\d+))?")
_CHANNEL = re.compile(r"\bchannel_id=(\d+)")
_TO_HOST = re.compile(r"\bis_host_transfer=true")
_PAIRS_OF_SEND = re.compile(r"_xla_send_recv_source_target_pairs=\"?\{((?:\{\d+,\d+\},?)*)\}")
KERNELS = ("tpu_custom_call", "mosaic_gpu")  # the module does not show what a kernel does between devices


def compiled_communicates(text: str, process_of: Sequence[int]) -> Communication:
    """Whether a compiled module (HLO text) has a collective between processes.

    ``process_of[i]`` is the process of the i-th device of the assignment.
    """
    return _communicates(text, process_of, _REPLICAS.match(text))


def _communicates(text: str, process_of: Sequence[int], replicas: re.Match[str] | None) -> Communication:
    many = int(replicas[1]) if replicas is not None else 1
    found = combined(_answers(text, None if len(process_of) % many else np.reshape(process_of, (many, -1))))
    if found is Communication.NO and any(kernel in text for kernel in KERNELS):
        return Communication.UNKNOWN
    return found


def _answers(text: str, grid: Any) -> Iterator[Communication]:
    for found in _COLLECTIVE.finditer(text):
        end = text.find("\n", found.start())
        line = text[found.start() : end if end >= 0 else len(text)]
        if found[1] in ("send", "recv"):
            if not _TO_HOST.search(line):
                pairs = _PAIRS_OF_SEND.search(line)
                groups = None if pairs is None else _listed(pairs[1])
                yield _spanned(grid, groups, channel=True, flat=True, both=False)
            continue
        channel, reduces = _CHANNEL.search(line), found[1] in _REDUCTIONS_OF_HLO
        by_axes = "replica_groups=mesh[" in line or "replica_groups=@mesh[" in line
        yield _spanned(
            grid,
            _groups(line),
            channel=channel is not None and channel[1] != "0",
            flat=by_axes or (reduces and "use_global_device_ids=true" in line),
            both=reduces,
        )


def _groups(line: str) -> Groups | None:
    listed, counted, meshed = (one.search(line) for one in (_LISTED, _IOTA, _MESH))
    if listed is not None:
        return _listed(listed[1])
    if counted is not None:
        return cut(iota(_ints(counted[3]), _ints(counted[4])), int(counted[1]), int(counted[2]))
    if meshed is not None:
        sizes = {name: int(size) for name, size in _AXIS_SIZE.findall(meshed[1])}
        parts = [AxisPart(name, int(before or 1), int(size or 0)) for name, before, size in _AXIS.findall(meshed[5])]
        return along_axes(sizes, parts, iota(_ints(meshed[2]), _ints(meshed[3])) if meshed[2] else _ints(meshed[4]))
    return None


def _listed(text: str) -> list[list[int]]:
    return [_ints(found[1]) for found in _ONE_LISTED.finditer(text)]


def _ints(text: str | None) -> list[int]:
    return [int(word) for word in (text or "").split(",") if word]


_NAMED = re.compile(r"stablehlo\.(?:all_reduce|all_gather|reduce_scatter|all_to_all|collective_\w+)\b")
_LOWERED_REPLICAS = re.compile(r"\bmhlo\.num_replicas = (\d+)")


def lowered_communicates(text: str, process_of: Sequence[int]) -> Communication:
    """Whether a lowered module (StableHLO) names a collective between processes; ``process_of`` as above.

    Most modules name none, and need not be converted. NO is not final: the partitioner may still insert collectives.
    """
    if not _NAMED.search(text):
        return Communication.NO
    try:
        convert = importlib.import_module("jaxlib._jax").mlir.mlir_module_to_xla_computation
        hlo = convert(text, use_tuple_args=False, return_tuple=False).as_hlo_text()
    except Exception:  # a version of jaxlib without it: the compiled module decides
        return Communication.UNKNOWN
    return _communicates(hlo, process_of, _LOWERED_REPLICAS.search(text))
