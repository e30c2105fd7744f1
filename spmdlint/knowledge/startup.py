"""What starts a multi-process job, and which calls start the backend."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct, convert

from spmdlint.knowledge.files import read_file
from spmdlint.knowledge.reading import named


class Startup(Struct, frozen=True):
    """The names, as in startup.toml."""

    initialize: frozenset[str]
    shutdown: frozenset[str]
    work: frozenset[str]
    harmless: frozenset[str]
    elsewhere: frozenset[str]
    asks: frozenset[str]
    connecting: frozenset[tuple[str, ...]]

    def works(self, name: str) -> bool:
        """Whether a call of this function starts the backend."""
        if named(name, self.harmless):
            return False
        return name in self.work or (named(name, self.work) and name.rpartition(".")[2][:1].islower())


@lru_cache(maxsize=1)
def startup() -> Startup:
    """The table that comes with the linter."""
    return convert(read_file("startup.toml")["startup"], Startup)
