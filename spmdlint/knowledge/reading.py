"""Which functions make arrays that span processes, and which read a whole array."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from spmdlint.knowledge.files import read_file


class Reading(Struct, frozen=True):
    """The names, as in reading.toml."""

    readers: frozenset[str]
    harmless: frozenset[str]
    methods: frozenset[str]
    properties: frozenset[str]
    sizes: frozenset[str]
    measures: frozenset[str]
    views: frozenset[str]
    devices: frozenset[str]
    local: frozenset[str]
    over_all: frozenset[str]
    arrays_of: frozenset[str]
    states: frozenset[str]
    gatherers: Mapping[str, str]
    makers: Mapping[str, tuple[str, int]]
    from_mesh: Mapping[str, tuple[int, int]]

    def reads(self, name: str) -> bool:
        """Whether a call of this function reads the whole of its first argument."""
        return _named(name, self.readers) and not _named(name, self.harmless)


def _named(name: str, names: frozenset[str]) -> bool:
    return name in names or any(name.startswith(start) for start in names if start.endswith("."))


@lru_cache(maxsize=1)
def reading() -> Reading:
    """The table that comes with the linter."""
    table = read_file("reading.toml")["reading"]
    sets = ["readers", "harmless", "methods", "properties", "sizes", "measures", "views"]
    sets += ["devices", "local", "over_all", "arrays_of", "states"]
    makers = {name: (keyword, position) for name, (keyword, position) in table["makers"].items()}
    from_mesh = {name: (mesh, specs) for name, (mesh, specs) in table["from_mesh"].items()}
    named = {name: frozenset(table[name]) for name in sets}
    named["measures"] |= named["sizes"]
    return Reading(
        **named,
        gatherers=table["gatherers"],
        makers=makers,
        from_mesh=from_mesh,
    )
