"""What takes a shape, and which methods of arrays look like fields."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from msgspec import Struct

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class SlipTable(Struct, frozen=True):
    """The table, as in slips.toml."""

    methods: frozenset[str]
    users: frozenset[str]
    reshape: frozenset[str]
    shapes: Mapping[str, int]


@lru_cache(maxsize=1)
def slip_table() -> SlipTable:
    """The table that comes with the linter."""
    table = tomllib.loads((files("spmdlint.knowledge") / "slips.toml").read_text(encoding="utf-8"))["slips"]
    return SlipTable(
        methods=frozenset(table["methods"]),
        users=frozenset(table["users"]),
        reshape=frozenset(table["reshape"]),
        shapes=table["shapes"],
    )
