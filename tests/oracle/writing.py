"""The text of a program under construction: modules, imports, names that are given once, and choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import hypothesis.strategies as st

Choice = TypeVar("Choice")

MAIN, LIBRARY, SETTINGS = "train", "layers", "settings"
"""The modules of a program, each importing from those after it only."""
MODULES = (SETTINGS, LIBRARY, MAIN)
HERE = "  # here"
"""Marks the line on which a finding is due if the program is faulty."""


class Draw:
    """Choices made by Hypothesis; the first option is the plainest, and what shrinking leads to."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object]) -> None:
        self._draw = draw

    def pick(self, *options: Choice) -> Choice:
        number = self._draw(st.integers(0, len(options) - 1)) if len(options) > 1 else 0
        assert isinstance(number, int)
        return options[number]

    def maybe(self) -> bool:
        return self.pick(False, True)


@dataclass
class Writer:
    """Modules as they grow. ``lowered``: JAX finds the fault when it lowers the program, so its mesh must be real."""

    lowered: bool = False
    imports: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    _given: dict[str, int] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """A name that the program does not use yet."""
        self._given[stem] = self._given.get(stem, 0) + 1
        return stem if self._given[stem] == 1 else f"{stem}_{self._given[stem]}"

    def need(self, module: str, line: str) -> None:
        held = self.imports.setdefault(module, [])
        if line not in held:
            held.append(line)

    def add(self, module: str, *lines: str) -> None:
        self.lines.setdefault(module, []).extend(("", *lines))

    def refer(self, draw: Draw, name: str, home: str, user: str) -> str:
        """The text by which a module refers to a name that another one defines."""
        if home == user:
            return name
        style = draw.pick("from", "module", "alias", "renamed")
        if style == "from":
            self.need(user, f"from {home} import {name}")
            return name
        if style == "module":
            self.need(user, f"import {home}")
            return f"{home}.{name}"
        if style == "alias":
            self.need(user, f"import {home} as {home[:2]}")
            return f"{home[:2]}.{name}"
        other = f"{name}_there"
        self.need(user, f"from {home} import {name} as {other}")
        return other

    def texts(self) -> dict[str, str]:
        """The files by module name."""
        found = {}
        for module in MODULES:
            if module in self.lines:
                common = [
                    "from functools import partial",
                    "import jax",
                    "import jax.numpy as jnp",
                    "from jax import lax",
                ]
                head = [*common, "from jax.sharding import PartitionSpec as P", *self.imports.get(module, ())]
                found[module] = "\n".join([*head, *self.lines[module]]) + "\n"
        return found
