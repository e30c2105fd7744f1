"""The last calls of a process in a file that outlives it: a ring buffer of numbers in mapped memory.

Writing a call copies eight bytes to memory that the kernel keeps, so that the process may be killed at any moment. The
numbers stand for events, whose lines are appended to a second file. From time to time the counts and prefixes of all
groups are written as checkpoints, from which a reader counts forwards and backwards.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks import timing
from spmdlint.runtime_checks.ending import write_error
from spmdlint.runtime_checks.fingerprint import Program
from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.replay import Replay
from spmdlint.runtime_checks.timing import Times

CALLS = 1 << 16
SLOT = 1 << 14  # size of each of the two slots for counts and prefixes
MAX_EVENTS_BYTES = 32 << 20
_CALL = struct.Struct("<II")
_START = 2 * SLOT
_TIMES = _START + CALLS * _CALL.size
_SIZE = _TIMES + timing.SIZE
_WORD = (1 << 32) - 1


class Recording:
    """The recording of one process. If it can no longer be written, it stops with one warning."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        events = path.with_suffix(".events")
        events.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        with path.open("w+b") as file:
            if hasattr(os, "posix_fallocate"):
                # A hole in the file without room on the disk would kill the process at the first write.
                os.posix_fallocate(file.fileno(), 0, _SIZE)
            else:
                file.truncate(_SIZE)
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._times = Times(self._map, _TIMES)
        self._events = events
        self._bytes = 0
        self._turn = 0
        self._numbers = 0
        self._groups: set[str] = set()
        self._lock = threading.Lock()

    def add_event(self, group: str, members: Sequence[int], program: Program, site: Site | None) -> int:
        """Write the event of a call, and return its number."""
        with self._lock:
            if group not in self._groups:
                self._groups.add(group)
                self._line({"group": group, "members": list(members)})
            self._numbers += 1
            place = {"filename": site.filename, "line": site.line} if site is not None else {}
            shown = {"function": program.function, **place}
            self._line({"event": self._numbers, "in": group, "digest": program.digest, **shown})
            return self._numbers

    def write_program(self, digest: str, record: Mapping[str, Any]) -> None:
        """Write the record behind a digest, once."""
        with self._lock:
            self._line({"program": digest, "record": record})

    def _line(self, data: Mapping[str, Any]) -> None:
        text = json.dumps(data) + "\n"
        self._bytes += len(text)
        if self._bytes > MAX_EVENTS_BYTES:
            return
        try:
            with self._events.open("a") as file:
                file.write(text)
        except OSError as error:
            self._bytes = MAX_EVENTS_BYTES
            write_error(f"spmdlint: the recording of calls cannot be continued: {error.strerror}.\n")

    def recorder(self, lock: AbstractContextManager[Any], then: Callable[[Any], object]) -> Callable[[Any], None]:
        """Returns a function that records a call, an object with a ``number``, and passes it on before the dispatch.

        A Python without a GIL needs ``lock``, so that the file and the calls passed on are in the same order. With a
        GIL, threads change only at calls and jumps, of which there is none before a call is passed on.
        """
        halves = memoryview(self._map)[_START:_TIMES].cast("I")
        last, word, written = CALLS - 1, _WORD, 0

        def record(event: Any) -> None:
            nonlocal written
            at = (written & last) * 2
            written += 1
            halves[at + 1] = event.number
            halves[at] = written & word
            then(event)

        def record_alone(event: Any) -> None:
            with lock:
                record(event)

        locked = getattr(sys, "_is_gil_enabled", lambda: True)
        return record if locked() else record_alone

    def checkpoint(self, written: int, groups: Mapping[str, tuple[int, int]]) -> None:
        """Write the count and the prefix of each group after this many calls, and the time."""
        self._times.add(written)
        text = json.dumps([written, groups], separators=(",", ":")).encode()
        if len(text) < SLOT:
            self._turn = turn = 1 - self._turn
            self._map[turn * SLOT : (turn + 1) * SLOT] = text.ljust(SLOT)


def read(path: Path) -> list[list[Any]]:
    """The recorded calls of a process, oldest first, as rows of a history; [] if there is no readable file."""
    return _rows(path, _data(path))[1]


def read_timed(path: Path) -> list[tuple[float | None, list[Any]]]:
    """The recorded calls of a process, each with its approximate time, if known."""
    data = _data(path)
    first, rows = _rows(path, data)
    times = timing.times_of(range(first, first + len(rows)), timing.read_times(data, _TIMES))
    return list(zip(times, rows, strict=True))


def _data(path: Path) -> bytes:
    """The contents of a file; nothing if it is not a recording."""
    try:
        data = path.read_bytes()
    except OSError:
        return b""
    return data if len(data) >= _TIMES else b""


def _rows(path: Path, data: bytes) -> tuple[int, list[list[Any]]]:
    """The number of the first call of a process that is still there, and the rows from it on."""
    if not data:
        return 1, []
    written, groups = _checkpoint(data)
    members, events, _ = _lines(path)
    calls: dict[int, int] = {}
    for place in range(CALLS):
        low, number = _CALL.unpack_from(data, _START + place * _CALL.size)
        if number:
            calls[low] = number
    known = [events[calls[at & _WORD]] for at in _before(written, calls, events)]
    replay = Replay(members, groups)
    rows = replay.back(known)
    first = written - len(rows) + 1
    at = written + 1
    while calls.get(at & _WORD) in events:
        rows.append(replay.on(events[calls[at & _WORD]]))
        at += 1
    return first, rows


def _before(written: int, calls: Mapping[int, int], events: Mapping[int, Any]) -> list[int]:
    """The numbers of the calls up to a checkpoint that can still be read, oldest first."""
    first = written
    while first > 0 and calls.get(first & _WORD) in events and written - first < CALLS:
        first -= 1
    return list(range(first + 1, written + 1))


def _checkpoint(data: bytes) -> tuple[int, dict[str, tuple[int, int]]]:
    best: tuple[int, dict[str, tuple[int, int]]] = (0, {})
    for turn in range(2):
        try:
            written, groups = json.loads(data[turn * SLOT : (turn + 1) * SLOT].rstrip(b"\0 "))
            found = {str(key): (int(count), int(prefix)) for key, (count, prefix) in groups.items()}
        except (ValueError, TypeError, AttributeError):
            continue  # never written, or half written when the process died
        if int(written) >= best[0]:
            best = (int(written), found)
    return best


def _lines(path: Path) -> tuple[dict[str, tuple[int, ...]], dict[int, dict[str, Any]], dict[str, dict[str, Any]]]:
    members: dict[str, tuple[int, ...]] = {}
    events: dict[int, dict[str, Any]] = {}
    programs: dict[str, dict[str, Any]] = {}
    try:
        lines = path.with_suffix(".events").read_text(errors="replace").splitlines()
    except OSError:
        return members, events, programs
    for line in lines:
        try:
            told = json.loads(line)
            if "members" in told:
                members[str(told["group"])] = tuple(int(one) for one in told["members"])
            elif "event" in told:
                events[int(told["event"])] = {**told, "group": str(told["in"])}
            else:
                programs[str(told["program"])] = dict(told["record"])
        except (ValueError, KeyError, TypeError):
            continue
    return members, events, programs


def read_programs(path: Path) -> dict[str, dict[str, Any]]:
    """The records behind the digests in a recording."""
    return _lines(path)[2]
