"""Which arguments of JAX's operations list the dimensions of arrays in an order that matters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from spmdlint.knowledge.files import read_file


@lru_cache(maxsize=1)
def dimensions() -> Mapping[str, tuple[tuple[int, str], ...]]:
    """The positions and names of these arguments, by operation, as in orders.toml."""
    table = read_file("orders.toml")["dimensions"]
    return {name: tuple((position, keyword) for position, keyword in given) for name, given in table.items()}
