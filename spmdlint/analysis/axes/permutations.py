"""Permutations and groups of devices as written: what is wrong for an axis of any size."""

from __future__ import annotations

from msgspec import Struct

from spmdlint.analysis.evaluation.standard import listed
from spmdlint.analysis.evaluation.values import Applied, Collection, Site, Values, certain, constant
from spmdlint.knowledge.load import Known


class BadPermutation(Struct, frozen=True):
    """A permutation with two pairs of one ``role``, or with a device outside an axis of ``size``.

    ``tried`` is the number of devices for which ``device`` was found, if the permutation is wrong for every other
    number as well (``size`` is that number, too, if the device is outside). ``device`` may be a variable's name. A
    ``role`` of "pair" means that the permutation lists single devices, such as ``device``, in place of pairs.
    """

    site: Site
    device: int | str
    role: str
    size: int | None = None
    tried: int | None = None


class BadGroups(Struct, frozen=True):
    """Groups that are not a partition of the axis.

    They hold ``repeated`` twice, leave ``missing`` out, or hold ``count`` devices of an axis of ``size``. ``tried`` is
    the size of groups for which ``repeated`` was found, if they overlap for every size.
    """

    site: Site
    repeated: int | None = None
    missing: int | None = None
    count: int = 0
    size: int | None = None
    tried: int | None = None


def pairs(known: Known, given: Values | None) -> list[tuple[int | None, int | None]] | None:
    """The source and destination of each pair, None for an unknown one; None if the permutation is not known."""
    elements = _elements(given)
    if elements is None:
        return None
    if known.sources:
        return [(_number(each), position) for position, each in enumerate(elements)]
    found: list[tuple[int | None, int | None]] = []
    for each in elements:
        ends = listed(each)
        found.append((_number(ends[0]), _number(ends[1])) if ends is not None and len(ends) == 2 else (None, None))
    return found


def repeated(site: Site, known: Known, given: Values | None) -> BadPermutation | None:
    """Two pairs that share a source or a destination, or a list of sources that is not a permutation."""
    alone = map(_number, (_elements(given) or ()) if not known.sources else ())  # not as the end of a pair
    single = next((number for number in alone if number is not None), None)
    if single is not None:
        return BadPermutation(site, single, "pair")
    ends = pairs(known, given)
    for position, role in enumerate(("source", "destination")):
        numbers = [end[position] for end in ends or ()]
        twice = next((e for n, e in enumerate(numbers) if e is not None and e in numbers[:n]), None)
        if twice is not None:
            return BadPermutation(site, twice, role)
    sources = [source for source, _ in ends or () if source is not None]
    if known.sources and ends and len(sources) == len(ends):
        # No source occurs twice, so one that is not below the count leaves a gap.
        outside = next((source for source in sources if not 0 <= source < len(ends)), None)
        return BadPermutation(site, outside, "source", len(ends)) if outside is not None else None
    return None


def out_of_range(site: Site, ends: list[tuple[int | None, int | None]], sizes: frozenset[int]) -> BadPermutation | None:
    """A device that is outside an axis of any of these sizes.

    JAX counts negative numbers from the end, as lists do: ``(i, i - 1)`` is a ring.
    """
    for pair in ends:
        for end, role in zip(pair, ("source", "destination"), strict=True):
            if end is not None and not -max(sizes) <= end < max(sizes):
                return BadPermutation(site, end, role, max(sizes))
    return None


def groups(given: Values | None) -> list[list[int]] | None:
    """The devices of each group; None if they are not known."""
    found: list[list[int]] = []
    outer = _elements(given)
    for each in outer or ():
        inner = _elements(each)
        numbers = [_number(number) for number in inner or ()]
        if inner is None or any(number is None for number in numbers):
            return None
        found.append([number for number in numbers if number is not None])
    return found if any(found) else None


def no_partition(site: Site, devices: list[int]) -> BadGroups | None:
    """Devices that occur twice, or are left out."""
    twice = next((d for n, d in enumerate(devices) if d in devices[:n]), None)
    if twice is not None:
        return BadGroups(site, repeated=twice)
    missing = next((number for number in range(len(devices)) if number not in devices), None)
    return BadGroups(site, missing=missing) if missing is not None else None


def _elements(given: Values | None) -> list[Values] | None:
    value = certain(given) if given is not None else None
    return listed(given) if given is not None and isinstance(value, (Collection, Applied)) else None


def _number(values: Values) -> int | None:
    known = constant(values)
    return known.value if known is not None and type(known.value) is int else None
