"""Which functions take a shape or a dimension, and which methods of arrays look like attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from spmdlint.knowledge.files import read_file


class SlipTable(Struct, frozen=True):
    """The table, as in slips.toml."""

    methods: frozenset[str]
    users: frozenset[str]
    placing: frozenset[str]
    reshape: frozenset[str]
    shapes: Mapping[str, int]
    dimensions: Mapping[str, tuple[str, ...]]
    counted_since: str


@lru_cache(maxsize=1)
def slip_table() -> SlipTable:
    """The table that comes with the linter."""
    table = read_file("slips.toml")["slips"]
    return SlipTable(
        methods=frozenset(table["methods"]),
        users=frozenset(table["users"]),
        placing=frozenset(table["placing"]),
        reshape=frozenset(table["reshape"]),
        shapes=table["shapes"],
        dimensions={name: tuple(parameters) for name, parameters in table["dimensions"].items()},
        counted_since=table["counted_from_the_end"]["since"],
    )
