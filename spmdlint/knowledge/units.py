"""What a number counts: processes, the devices of all processes, or those of this process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

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
    table = read_file("units.toml")["units"]
    return Units(
        counts=table["counts"],
        places=table["places"],
        lists=table["lists"],
        parts=frozenset(table["parts"]),
        part_of=frozenset(table["part_of"]),
        rows={name: (position, keyword) for name, (position, keyword) in table["rows"].items()},
        takers=frozenset(table["takers"]),
        patterned=frozenset(table["patterned"]),
        stacks=frozenset(table["stacks"]),
        cutters=frozenset(table["cutters"]),
        leaves=frozenset(table["leaves"]),
        shares=frozenset((place, count) for place, count in table["shares"]),
        sharders=frozenset(table["sharders"]),
        strides=frozenset(table["strides"]),
        sums=frozenset(table["sums"]),
        meshes=frozenset(table["meshes"]),
        devices=table["devices"],
        placers={name: (what, where) for name, (what, where) in table["placers"].items()},
        dealers={how: frozenset(names) for how, names in table["dealers"].items()},
        pickers=frozenset(table["pickers"]),
        tellers=tuple(table["tellers"]),
        told=frozenset(table["told"]),
        workers=frozenset(table["workers"]),
    )
