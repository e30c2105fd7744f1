"""What libraries have removed: names and parameters, the version since when, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from spmdlint.knowledge.files import read_file

Version = tuple[int, ...]


class Removed(Struct, frozen=True):
    """A name or parameter that is gone. ``same``: what replaces it can be put in its place as it is."""

    name: str
    since: Version
    use: str
    same: bool = False

    def gone(self, version: Version | None) -> bool:
        """Is it gone in a version; None stands for the newest."""
        return version is None or (*version, 0, 0) >= self.since


class Removals(Struct, frozen=True, dict=True):
    """All of them: names by their dotted name, parameters by the function's name and theirs."""

    names: Mapping[str, Removed]
    parameters: Mapping[str, Mapping[str, Removed]]

    @cached_property
    def last_parts(self) -> frozenset[str]:
        """What the names end with."""
        return frozenset(name.rpartition(".")[2] for name in self.names)

    @cached_property
    def parameter_names(self) -> frozenset[str]:
        """The parameters of all functions."""
        return frozenset(name for parameters in self.parameters.values() for name in parameters)

    def name(self, dotted: str) -> Removed | None:
        """The entry that a dotted name falls under: its own, or the nearest one above it."""
        while dotted:
            found = self.names.get(dotted)
            if found is not None:
                return found
            dotted = dotted.rpartition(".")[0]
        return None


@lru_cache(maxsize=1)
def removals() -> Removals:
    """The table that comes with the linter."""
    tables = read_file("removed.toml")
    names = {name: _entry(name, table) for name, table in tables["removed"].items()}
    parameters = {
        function: {name: _entry(name, table) for name, table in entries.items()}
        for function, entries in tables["removed_parameters"].items()
    }
    return Removals(names, parameters)


def _entry(name: str, table: Mapping[str, Any]) -> Removed:
    since = tuple(int(part) for part in table["since"].split("."))
    return Removed(name, since, table["use"], table.get("same", False))
