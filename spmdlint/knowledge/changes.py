"""What versions of libraries have removed and added: names and parameters, and what to write in their place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from spmdlint.knowledge.files import read_file, read_measured
from spmdlint.releases import Releases, Version, version


class Change(Struct, frozen=True):
    """A name or parameter that a version removed, or added if ``added``.

    ``use`` says what to write where it is absent, "" if that is not known; ``same``: it can be written in its place
    unchanged. ``older`` does the same in releases that do not have ``use`` yet.
    """

    name: str
    since: Version
    use: str = ""
    same: bool = False
    added: bool = False
    older: str = ""

    def instead(self, oldest: Version | None) -> str:
        """What to write in its place in all releases from the oldest on."""
        came = None if self.added or oldest is None else additions().name(self.use)
        return self.older if came is not None and came.absent(Releases(oldest)) else self.use

    def absent(self, releases: Releases) -> bool:
        """Whether the oldest release does not have it yet, or the newest does not have it any more.

        If the oldest is not known, no release has what came after the newest.
        """
        newest = releases.newest
        if self.added:
            at_least = newest if releases.oldest is None else releases.oldest
            return at_least is not None and self.since[: len(at_least)] > at_least
        return newest is None or (*newest, 0, 0) >= self.since


class Changes(Struct, frozen=True, dict=True):
    """Names by their dotted name, parameters by the function's name and their own."""

    names: Mapping[str, Change]
    parameters: Mapping[str, Mapping[str, Change]]

    @cached_property
    def last_parts(self) -> frozenset[str]:
        """The last parts of the names."""
        return frozenset(name.rpartition(".")[2] for name in self.names)

    @cached_property
    def parameter_names(self) -> frozenset[str]:
        """The parameters of all functions."""
        return frozenset(name for parameters in self.parameters.values() for name in parameters)

    def name(self, dotted: str) -> Change | None:
        """The entry for a dotted name: its own, or that of the nearest prefix."""
        while dotted:
            found = self.names.get(dotted)
            if found is not None:
                return found
            dotted = dotted.rpartition(".")[0]
        return None


@lru_cache(maxsize=1)
def removals() -> Changes:
    """What was removed: a table that is written by hand."""
    tables = read_file("removed.toml")
    names = {name: _removed(name, table) for name, table in tables["removed"].items()}
    parameters = {
        function: {name: _removed(name, table) for name, table in entries.items()}
        for function, entries in tables["removed_parameters"].items()
    }
    return Changes(names, parameters)


@lru_cache(maxsize=1)
def additions() -> Changes:
    """What was added: a table that is measured, and what took the place of names before, which is written by hand."""
    tables = read_measured("added.json")
    before = read_file("before.toml")["before"]
    names = {
        name: Change(name, version(since), before.get(name, ""), added=True)
        for since, listed in tables["names"].items()
        for name in listed
    }
    parameters = {
        function: {
            name: Change(name, version(since), before.get(f"{function}.{name}", ""), added=True)
            for name, since in entries.items()
        }
        for function, entries in tables["parameters"].items()
    }
    return Changes(names, parameters)


def changes(version: Version | None) -> tuple[Changes, ...]:
    """The tables that count for a version: nothing is newer than the newest."""
    return (removals(),) if version is None else (removals(), additions())


def _removed(name: str, table: Mapping[str, Any]) -> Change:
    return Change(name, version(table["since"]), table["use"], table.get("same", False), older=table.get("older", ""))
