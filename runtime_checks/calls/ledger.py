"""A process's ordered record of its parallel calls, one sequence per set of processes, and a digest of each sequence.

The digest of all calls so far, for every count, is equal on two processes as long as their sequences are. It is a
polynomial over the digests of the calls, modulo 2 ** 64. It can be extended by many calls at once, and reversed, so
that a process that kept its last calls and its last prefix can compute the prefix at each of them.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmdlint.runtime_checks.calls.fingerprint import Program
from spmdlint.runtime_checks.calls.frames import Site, site_data
from spmdlint.runtime_checks.records import Place

_FACTOR = 0x9E3779B97F4A7C15
_MODULUS = 1 << 64
FEW = 8  # up to this many calls, Python's integers are faster than NumPy's arrays


def after(prefix: int, count: int, digest: int) -> int:
    """The prefix after one more call than ``count``."""
    return (prefix + digest * pow(_FACTOR, count + 1, _MODULUS)) % _MODULUS


def before(prefix: int, count: int, digest: int) -> int:
    """The prefix before call ``count``, which has this digest."""
    return (prefix - digest * pow(_FACTOR, count, _MODULUS)) % _MODULUS


def extend(prefix: int, count: int, digests: Sequence[int]) -> Any:
    """The prefixes after each of several more calls."""
    if len(digests) <= FEW:
        found = []
        for digest in digests:
            prefix = after(prefix, count, digest)
            count += 1
            found.append(prefix)
        return found
    import numpy as np

    powers = np.full(len(digests), _FACTOR, np.uint64)
    powers[0] = pow(_FACTOR, count + 1, _MODULUS)
    np.multiply.accumulate(powers, out=powers)
    powers *= np.array(digests, np.uint64)
    powers[0] = (int(powers[0]) + prefix) % _MODULUS  # NumPy warns if a single number overflows
    return np.cumsum(powers, out=powers)


class Trail:
    """The digests of a group at its last calls, in a ring buffer: of the calls, and of what they were given."""

    SIZE = 1 << 15

    def __init__(self) -> None:
        import numpy as np

        self._ring = np.zeros((2, self.SIZE), np.uint64)
        self._newest = 0

    def put(self, count: int, prefixes: Any, given: Any) -> None:
        """Keep the digests at each of the calls after ``count``."""
        import numpy as np

        self._newest = count + len(prefixes)
        kept = np.array([prefixes, given], np.uint64)[:, -self.SIZE :]
        places = np.arange(self._newest - kept.shape[1], self._newest) % self.SIZE
        self._ring[:, places] = kept

    def at(self, count: int) -> tuple[int, int] | None:
        """The two digests after call ``count``, or None if they are no longer known, or not yet."""
        if count == 0:
            return 0, 0
        if not self._newest - self.SIZE < count <= self._newest:
            return None
        calls, given = self._ring[:, (count - 1) % self.SIZE].tolist()
        return calls, given


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
    about to, with the names that they have then: some end before they are told. ``prefix`` is the digest of the calls,
    ``given`` that of the values that they are given, and ``trail`` has those of earlier calls, for the comparing
    process of background mode. They are two, as values that only some processes tell must not end the comparison of the
    calls.
    """

    processes: tuple[int, ...]
    key: str
    count: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    threads: dict[int, str] = field(default_factory=dict)
    prefix: int = 0
    given: int = 0
    trail: Trail | None = None

    def thread_names(self) -> list[str]:
        return sorted(self.threads.values())


class Ledger:
    """All sequences of one process, and the numbers of calls that do not communicate."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, ...], Group] = {}
        self._lock = threading.Lock()
        self.quiet: Counter[str] = Counter()
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
        with self._lock:
            return list(self._groups.values())


def group_key(processes: tuple[int, ...]) -> str:
    """A short name of a set of processes, equal on all of them."""
    return hashlib.blake2b(repr(processes).encode(), digest_size=5).hexdigest()
