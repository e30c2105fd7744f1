"""A process's ordered record of its parallel calls, one sequence per set of processes."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site, site_data
from spmdlint.runtime_checks.calls.prefixes import Trail
from spmdlint.runtime_checks.records import Place

RING = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One parallel call: its number in its group from 1, what was called, from where."""

    index: int
    program: Program
    site: Site | None

    def placed(self) -> Place:
        """The entry with the lines that led to it."""
        return {"index": self.index, **site_data(self.site, self.program.function)}


@dataclass(slots=True, eq=False)
class Group:
    """The sequence of one set of processes.

    ``lock`` keeps two threads of one process from numbering at once; ``threads`` are those that make calls, or are
    about to. ``prefix`` of the calls, and ``given`` of the values that they are given, are kept in background mode,
    and ``trail`` and ``values`` of these by the comparing process. They are two, as values that only some processes
    tell must not end the comparison of the calls.
    """

    processes: tuple[int, ...]
    key: str
    count: int = 0
    ring: deque[Entry] = field(default_factory=lambda: deque(maxlen=RING))
    lock: threading.RLock = field(default_factory=threading.RLock)
    threads: set[int] = field(default_factory=set)
    prefix: int = 0
    given: int = 0
    trail: Trail | None = None
    values: Trail | None = None

    def append(self, program: Program, site: Site | None) -> Entry:
        """Number the next call."""
        self.count += 1
        entry = Entry(self.count, program, site)
        self.ring.append(entry)
        return entry


def thread_names(group: Group) -> list[str]:
    """The threads that make calls over a set of processes, by name; one that has ended has none."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return sorted(names.get(ident, "a thread that has ended") for ident in tuple(group.threads))


class Ledger:
    """All sequences of one process, and the numbers of calls that do not communicate."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, ...], Group] = {}
        self._lock = threading.Lock()
        self.quiet: dict[str, int] = {}
        self.last: Entry | None = None
        self.on_new: Callable[[Group], None] = lambda _group: None

    def group(self, processes: tuple[int, ...]) -> Group:
        """The sequence of a set of processes (sorted)."""
        with self._lock:
            found = self._groups.get(processes)
            if found is None:
                found = self._groups[processes] = Group(processes, group_key(processes))
                self.on_new(found)
            return found

    def counts(self) -> dict[str, int]:
        """How many calls each group has seen from this process, by the group's key."""
        with self._lock:
            return {group.key: group.count for group in self._groups.values()}

    def groups(self) -> list[Group]:
        """All groups so far."""
        with self._lock:
            return list(self._groups.values())

    def note_quiet(self, program: Program) -> None:
        """Count a call that is not compared."""
        self.quiet[program.function] = self.quiet.get(program.function, 0) + 1


def group_key(processes: tuple[int, ...]) -> str:
    """A short name of a set of processes, equal on all of them."""
    return hashlib.blake2b(repr(processes).encode(), digest_size=5).hexdigest()
