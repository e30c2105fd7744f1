"""What a number counts: processes, the devices of all processes, or those of this process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct, convert

from spmdlint.knowledge.files import read_file

Unit = Literal["process", "device", "local"]


class Units(Struct, frozen=True):
    """The names, as in units.toml."""

    counts: Mapping[str, Unit]
    places: Mapping[str, Unit]
    lists: Mapping[str, Unit]
    parts: frozenset[str]
    part_of: frozenset[str]
    rows: Mapping[str, tuple[int, str]]
    takers: frozenset[str]
    patterned: frozenset[str]
    stacks: frozenset[str]
    cutters: frozenset[str]
    leaves: frozenset[str]
    shares: frozenset[tuple[str, str]]
    sharders: frozenset[str]
    strides: frozenset[str]
    sums: frozenset[str]
    meshes: frozenset[str]
    devices: str
    placers: Mapping[str, tuple[str, str]]
    dealers: Mapping[Literal["surely", "likely"], frozenset[str]]
    pickers: frozenset[str]
    tellers: tuple[str, ...]
    told: frozenset[str]
    workers: frozenset[str]


@lru_cache(maxsize=1)
def units() -> Units:
    """The table that comes with the linter."""
    return convert(read_file("units.toml")["units"], Units)
