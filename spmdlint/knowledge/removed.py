"""What libraries have removed: names and parameters, the version that removed them, and replacements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from spmdlint.knowledge.files import read_file

Version = tuple[int, ...]


class Removed(Struct, frozen=True):
    """A removed name or parameter. ``same``: the replacement can be written in its place unchanged."""

    name: str
    since: Version
    use: str
    same: bool = False

    def gone(self, version: Version | None) -> bool:
        """Whether it is removed in a version; None means the newest."""
        return version is None or (*version, 0, 0) >= self.since


class Removals(Struct, frozen=True, dict=True):
    """All removals: names by their dotted name, parameters by the function's name and their own."""

    names: Mapping[str, Removed]
    parameters: Mapping[str, Mapping[str, Removed]]

    @cached_property
    def last_parts(self) -> frozenset[str]:
        """The last parts of the names."""
        return frozenset(name.rpartition(".")[2] for name in self.names)

    @cached_property
    def parameter_names(self) -> frozenset[str]:
        """The parameters of all functions."""
        return frozenset(name for parameters in self.parameters.values() for name in parameters)

    def name(self, dotted: str) -> Removed | None:
        """The entry for a dotted name: its own, or that of the nearest prefix."""
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
