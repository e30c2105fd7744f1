"""Lowered and compiled modules as text: a canonical form, whether they communicate, where two forms differ."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Parts of a module that come from one process's memory: unnamed pmap axes, addresses of Python callbacks.
_ADDRESS = re.compile(r"<axis 0x[0-9a-f]+>|0x7f[0-9a-f]{10}\b")
_CALLBACK_LINE = re.compile(r"^.*custom_call.*callback.*$", re.M)
_CALLBACK_NUMBER = re.compile(r'(backend_config = (?:"|\{[^}]*?index = ))\d+')
_POINTER_CONSTANT = re.compile(r"(stablehlo\.constant dense<)\d{13,}(> : tensor<(?:ui|i)64>)")

_MODULE_NAME = re.compile(r"\Amodule @\S+ ")
_VALUE = re.compile(r"%\w+(?::\d+)?(?:#\d+)?")
_LOWERED = re.compile(
    r"stablehlo\.(?:all_reduce|all_gather|all_to_all|reduce_scatter|collective_permute|collective_broadcast)\b"
)
_LOWERED_GROUPS = re.compile(r"(?:replica_groups|source_target_pairs) = dense<([^>]*)> : tensor<(\d+)x(\d+)xi64>")
# Since JAX 0.12 groups are named by the axes of a mesh; a mesh with a custom order of devices is not read here.
_LOWERED_MESH = re.compile(r"sdy\.mesh @(\w+) = <\[([^\]]*)\]>")
_LOWERED_AXES = re.compile(
    r"replica_group_mesh_axes<mesh = @(\w+), axes = \[((?:#stablehlo\.axis_ref<name = \"[^\"]*\">(?:, )?)*)\]>"
)
_COMPILED_AXES = re.compile(r"replica_groups=mesh\[([^\]]*)\] \{([^}:]*)\}")
_AXIS_SIZE = re.compile(r"['\"]([^'\"]+)['\"] ?= ?(\d+)")
_AXIS_NAME = re.compile(r"['\"]([^'\"]+)['\"]")
_COMPILED = re.compile(
    r"= .*?\b(?:all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|collective-permute"
    r"|collective-broadcast|send|recv)(?:-start)?\("
)
_COMPILED_GROUPS = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d,]*\},?)*)\}")
_IOTA_GROUPS = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")


def canonical(text: str) -> str:
    """The lowered module without the parts that differ between two processes that lowered the same program.

    Addresses become numbers in order of appearance. The text must come without locations.
    """
    names: dict[str, str] = {}
    text = _ADDRESS.sub(lambda found: names.setdefault(found[0], f"<address {len(names)}>"), text)
    if "callback" in text:
        text = _CALLBACK_LINE.sub(lambda line: _CALLBACK_NUMBER.sub(r"\g<1>0", line[0]), text)
        text = _POINTER_CONSTANT.sub(r"\g<1>0\g<2>", text)
    return text


def digest(text: str) -> str:
    """A short name for a text that is the same on every process."""
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def lowered_communicates(text: str, process_of: Sequence[int]) -> bool:
    """Whether a lowered module (StableHLO) names a collective between processes.

    ``process_of[i]`` is the process of the i-th device of the assignment. False means "not known yet": the
    partitioner may still insert collectives.
    """
    meshes = {found[1]: found[2] for found in _LOWERED_MESH.finditer(text)}
    for line in _lines_with(_LOWERED, text):
        listed, axes = _LOWERED_GROUPS.search(line), _LOWERED_AXES.search(line)
        groups = None
        if listed is not None:
            groups = _dense(listed)
        elif axes is not None and axes[1] in meshes:
            groups = _along_axes(meshes[axes[1]], axes[2])
        if _groups_span(groups, process_of):
            return True
    return False


def compiled_communicates(text: str, process_of: Sequence[int]) -> bool:
    """Whether a compiled module (HLO text) has a collective between processes; True in doubt."""
    for line in _lines_with(_COMPILED, text):
        listed, iota, axes = (one.search(line) for one in (_COMPILED_GROUPS, _IOTA_GROUPS, _COMPILED_AXES))
        if listed is not None and listed[1]:
            groups: list[list[int]] | None = [
                [int(n) for n in part.split(",") if n] for part in re.findall(r"\{([\d,]*)\}", listed[1])
            ]
        elif iota is not None:
            groups = _iota(iota)
        elif axes is not None:
            groups = _along_axes(axes[1], axes[2])
        else:
            groups = None
        if _groups_span(groups, process_of):
            return True
    # The module does not show what a kernel of another compiler does between devices.
    return "tpu_custom_call" in text or "mosaic_gpu" in text


def _lines_with(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for found in pattern.finditer(text):
        # An operation with a region ends some lines further down; its attributes are on its first line.
        end = text.find("\n", found.start())
        yield text[found.start() : end if end >= 0 else len(text)]


def _dense(found: re.Match[str]) -> list[list[int]] | None:
    rows, columns = int(found[2]), int(found[3])
    numbers = [int(n) for n in re.findall(r"-?\d+", found[1])]
    if len(numbers) == 1:
        numbers *= rows * columns
    if len(numbers) != rows * columns:
        return None
    return [numbers[row * columns : (row + 1) * columns] for row in range(rows)]


def _iota(found: re.Match[str]) -> list[list[int]] | None:
    """Expand XLA's ``[groups,size]<=[dimensions]T(permutation)``."""
    rows, columns = int(found[1]), int(found[2])
    shape = [int(n) for n in found[3].split(",")]
    order = [int(n) for n in found[4].split(",")] if found[4] else list(range(len(shape)))
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    flat = [0]
    for axis in order:
        flat = [base + step * strides[axis] for base in flat for step in range(shape[axis])]
    if len(flat) != rows * columns:
        return None
    return [flat[row * columns : (row + 1) * columns] for row in range(rows)]


def _along_axes(mesh: str, axes: str) -> list[list[int]] | None:
    """The groups of devices that differ only in these axes of a mesh with its devices in the usual order."""
    sizes = {name: int(size) for name, size in _AXIS_SIZE.findall(mesh)}
    wanted = _AXIS_NAME.findall(axes)
    if not sizes or not wanted or any(name not in sizes for name in wanted):
        return None
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, at in enumerate(itertools.product(*map(range, sizes.values()))):
        rest = tuple(n for name, n in zip(sizes, at, strict=True) if name not in wanted)
        groups.setdefault(rest, []).append(place)
    return list(groups.values())


def _groups_span(groups: list[list[int]] | None, process_of: Sequence[int]) -> bool:
    if groups is None or not groups:
        return True
    try:
        return any(len({process_of[n] for n in group if n >= 0}) > 1 for group in groups)
    except IndexError:
        return True


@dataclass(frozen=True, slots=True)
class LineDifference:
    """The first line at which two modules differ: its number from 1 and both lines; "" if one has ended."""

    number: int
    first: str
    second: str


def first_difference(first: str, second: str) -> LineDifference | None:
    """The first line in which two module texts differ apart from their names, or None if they are equal.

    The names of values are numbers that an operation further down can change: they count only if nothing else differs.
    """
    left, right = (_MODULE_NAME.sub("module ", text).splitlines() for text in (first, second))
    unnamed = [[_VALUE.sub("%", line) for line in lines] for lines in (left, right)]
    for one, other in (unnamed, (left, right)):
        number = next((n for n, pair in enumerate(zip(one, other, strict=False), 1) if pair[0] != pair[1]), None)
        if number is not None:
            return LineDifference(number, left[number - 1].strip(), right[number - 1].strip())
        if len(left) != len(right):
            break
    if len(left) == len(right):
        return None
    number = min(len(left), len(right)) + 1
    return LineDifference(
        number,
        left[number - 1].strip() if number <= len(left) else "",
        right[number - 1].strip() if number <= len(right) else "",
    )
