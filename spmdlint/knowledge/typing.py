"""How array functions type over mesh axes: the class of each name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct, convert

from spmdlint.knowledge.files import read_file

Typed = Literal[
    "shape", "like", "sum", "mean", "linear", "sumlike", "product", "quotient", "nonlinear", "cut", "joined", "key",
    "draw", "update",
]  # fmt: skip


class Methods(Struct, frozen=True):
    """Methods of unknown objects, by their bare names, as in typing.toml."""

    module: str
    update: frozenset[str]
    replace: frozenset[str]
    apply: frozenset[str]
    other_results: frozenset[str]
    keys: frozenset[str]
    fixed: Mapping[str, bool]


class OfRows(Struct, frozen=True):
    """Functions on arrays with one row per device: they make one, read one row, or pass it on."""

    replicate: frozenset[str]
    first: frozenset[str]
    first_of_each: frozenset[str]
    hand_on: frozenset[str]
    split: frozenset[str]
    split_own: frozenset[str]
    pick: frozenset[str]
    reductions: frozenset[str]
    derivatives: frozenset[str]
    counters: frozenset[str]
    own_models: frozenset[str]


class Optimizers(Struct, frozen=True):
    """Optimizers that do more than scale and sum gradients, those made of others, and those made of own functions."""

    bending: frozenset[str]
    made_of: frozenset[str]
    own: frozenset[str]


class Typing(Struct, frozen=True):
    """The classes of functions, by exact name and by prefix, and functions that are not operations on arrays."""

    exact: Mapping[str, Typed]
    below: tuple[tuple[str, Typed], ...]
    rules: Mapping[str, str]
    methods: Methods
    rows: OfRows
    optimizers: Optimizers
    stacks: frozenset[str]
    shaped_by: Mapping[str, frozenset[int | str]]

    def typed(self, name: str) -> Typed | None:
        """The class of a function; None if it is not known."""
        found = self.exact.get(name)
        if found is not None or name.rpartition(".")[2][:1].isupper():
            return found
        return next((typed for start, typed in self.below if name.startswith(start)), None)


@lru_cache(maxsize=1)
def typing_table() -> Typing:
    """The table that comes with the linter."""
    table = read_file("typing.toml")["typing"]
    named: list[tuple[str, Typed]] = [(name, typed) for typed in get_args(Typed) for name in table[typed]]
    exact = {name: typed for name, typed in named if not name.endswith(".")}
    below = [(name, typed) for name, typed in named if name.endswith(".")]
    rows, methods = convert(table["rows"], OfRows), convert(table["methods"], Methods)
    optimizers, stacks = convert(table["optimizers"], Optimizers), frozenset(table["made_of"]["parts"])
    shaped_by = {name: frozenset(given) for name, given in table["shaped_by"].items()}
    return Typing(exact, tuple(below), table["rules"], methods, rows, optimizers, stacks, shaped_by)
