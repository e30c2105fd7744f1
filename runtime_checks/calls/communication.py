"""Whether a program communicates between processes, from the groups of devices that its collectives join."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective: its groups, None if they cannot be read, and what their numbers stand for.

    With ``flat`` they are places in the device assignment. Otherwise XLA counts replicas if the collective has no
    channel, and partitions if it has one; ``both`` is the combination of the two that reductions with a channel use.
    No group at all means one with all devices.
    """

    groups: Groups | None
    channel: bool
    flat: bool = False
    both: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """The devices that run a program: the process of each, replica by replica, and the number of replicas."""

    process_of: Sequence[int]
    replicas: int = 1

    def spanned(self, collective: Collective) -> Communication:
        """Whether the devices of one group belong to several processes."""
        partitions, rest = divmod(len(self.process_of), self.replicas)
        if collective.groups is None or rest:
            return Communication.UNKNOWN
        try:
            groups = [[number for number in group if number >= 0] for group in collective.groups]
            spans = any(
                len({self.process_of[place] for place in group}) > 1
                for group in self._places(groups, collective, partitions)
            )
        except IndexError:
            return Communication.UNKNOWN
        return Communication.YES if spans else Communication.NO

    def _places(self, groups: list[list[int]], collective: Collective, partitions: int) -> Iterable[list[int]]:
        """The groups as places in the device assignment."""
        if collective.flat:
            return groups or [list(range(len(self.process_of)))]
        if collective.channel and not collective.both:
            groups = groups or [list(range(partitions))]
            _check(groups, partitions)
            return [[r * partitions + n for n in group] for r in range(self.replicas) for group in groups]
        groups = groups or [list(range(self.replicas))]
        _check(groups, self.replicas)
        if collective.both and collective.channel:
            return [[n * partitions + p for n in group for p in range(partitions)] for group in groups]
        return [[n * partitions + p for n in group] for p in range(partitions) for group in groups]


def _check(groups: list[list[int]], many: int) -> None:
    if any(number >= many for group in groups for number in group):
        raise IndexError


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
    many = 1
    for size, _ in split:
        many *= size
    if not parts or any(part.name not in sizes for part in parts) or (devices and len(devices) != many):
        return None
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, at in enumerate(itertools.product(*(range(size) for size, _ in split))):
        rest = tuple(n for n, (_, joined) in zip(at, split, strict=True) if not joined)
        groups.setdefault(rest, []).append(devices[place] if devices else place)
    return list(groups.values())


def iota(shape: Sequence[int], order: Sequence[int] = ()) -> list[int]:
    """XLA's ``[shape]T(order)``: the numbers from 0 in this shape, transposed, in a row."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    flat = [0]
    for axis in order or range(len(shape)):
        flat = [base + step * strides[axis] for base in flat for step in range(shape[axis])]
    return flat


def cut(numbers: Sequence[int], rows: int, columns: int) -> Groups | None:
    """So many groups of so many numbers each, or None if that is not all of them."""
    if len(numbers) != rows * columns:
        return None
    return [numbers[row * columns : (row + 1) * columns] for row in range(rows)]
