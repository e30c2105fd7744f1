"""Which functions make arrays that span processes, or records, and which read a whole array."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct, convert

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
    listing: frozenset[str]
    devices: frozenset[str]
    local: frozenset[str]
    over_all: frozenset[str]
    trees: frozenset[str]
    host: frozenset[str]
    here: frozenset[str]
    carrying: frozenset[str]
    eager: frozenset[str]
    reductions: frozenset[str]
    together: frozenset[str]
    field_makers: frozenset[str]
    passing: frozenset[str]
    next: str
    paired: Mapping[str, int]
    shapers: Mapping[str, int]
    reads_at: Mapping[str, int]
    classes: Mapping[str, bool]
    laying_out: frozenset[str]
    context: str
    transfer: str
    one_device: str
    gatherers: Mapping[str, str]
    makers: Mapping[str, tuple[str, int]]
    from_mesh: Mapping[str, tuple[int, int]]

    def reads(self, name: str) -> bool:
        """Whether a call of this function reads the whole of its first argument."""
        return named(name, self.readers) and not named(name, self.harmless)


def named(name: str, names: frozenset[str]) -> bool:
    """Whether a name is one of those that a table lists, or begins with one of them that ends in a dot."""
    return name in names or any(name.startswith(start) for start in names if start.endswith("."))


@lru_cache(maxsize=1)
def reading() -> Reading:
    """The table that comes with the linter."""
    table = read_file("reading.toml")["reading"]
    return convert({**table, "measures": [*table["measures"], *table["sizes"]]}, Reading)
