"""What a library's function does to the elements of a sequence, or to numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, get_args

from spmdlint.knowledge.files import read_file

Deed = Literal[
    "length", "range", "list", "dictionary", "enumerate", "zip", "filter", "map", "iterate", "next", "reverse", "chain",
    "repeat", "takewhile", "islice", "slice", "split", "split evenly", "array", "numbers", "fill", "join", "pad",
    "space", "minimum", "maximum", "divide", "integer", "ceiling", "floor", "nothing", "gather", "broadcast", "equal",
]  # fmt: skip


@lru_cache(maxsize=1)
def elements() -> Mapping[str, Deed]:
    """The table that comes with the linter: what a function does, by its name."""
    table = read_file("elements.toml")["elements"]
    return {name: deed for deed in get_args(Deed) for name in table[deed]}
