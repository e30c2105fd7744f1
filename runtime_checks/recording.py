"""The last calls of a process in a file that outlives it: a ring buffer of numbers in mapped memory.

Writing a call copies eight bytes to memory that the kernel keeps, so that the process may be killed at any moment. The
numbers stand for events, whose lines are appended to a second file. From time to time the counts and prefixes of all
groups are written as checkpoints, from which a reader counts forwards and backwards.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from spmdlint.runtime_checks import timing
from spmdlint.runtime_checks.ending import write_error
from spmdlint.runtime_checks.fingerprint import Program
from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.replay import Replay
from spmdlint.runtime_checks.retention import UNNAMED, set_aside
from spmdlint.runtime_checks.timing import Times

CALLS = 1 << 16
SLOT = 1 << 14  # size of each of the two slots for counts and prefixes
FULL_BYTES = 24 << 20  # of the second file; beyond it, records of programs are written without their arguments
SHORT_BYTES = 48 << 20  # beyond this, records of programs are not written
MAX_EVENTS_BYTES = 64 << 20
_CALL = struct.Struct("<II")
_START = 2 * SLOT
_TIMES = _START + CALLS * _CALL.size
_SIZE = _TIMES + timing.SIZE
_WORD = (1 << 32) - 1
_EVENT_LINE = re.compile(r'\{"event": (\d+), "in": "\w+", "digest": "(\w+)".*?("once": true)?\}$')
_PROGRAM_LINE = re.compile(r'\{"program": "(\w+)"')
LATER = "all later calls"
MANY = 64  # numbers; longer lists of devices are written as runs
RECENT_VALUES = 256  # asserted values that may still be called, whether recorded or not
MAX_UNPACKED = 1 << 20  # devices of one program


class Recording:
    """The recording of one process of a job, readable by its user only.

    If it can no longer be written, or is full, this is said once, and in the recording. A recording of an earlier job
    at the same path is kept beside it.
    """

    def __init__(self, path: Path, job: str = UNNAMED) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        set_aside(path)
        events = path.with_suffix(".events")
        with _new(path) as file:
            if hasattr(os, "posix_fallocate"):
                # A hole in the file without room on the disk would kill the process at the first write.
                os.posix_fallocate(file.fileno(), 0, _SIZE)
            else:
                file.truncate(_SIZE)
            self._map = mmap.mmap(file.fileno(), _SIZE)
        _new(events).close()
        self._times = Times(self._map, _TIMES)
        self._events = events
        self._bytes = 0
        self._failed = False
        self._tidy_at = FULL_BYTES
        self._last_program = ""
        self._freeze: Callable[[], None] = lambda: None
        self._frozen = False
        self._turn = 0
        self._numbers = 0
        self._groups: set[str] = set()
        self._lock = threading.Lock()
        self._omitted: set[str] = set()
        self._line({"job": job})

    def add_event(
        self, group: str, members: Sequence[int], program: Program, site: Site | None, *, aside: bool = False
    ) -> int:
        """Write the event of a call, and return its number; ``aside`` is whether it is not the main thread's."""
        with self._lock:
            if group not in self._groups:
                self._groups.add(group)
                self._line({"group": group, "members": list(members)})
            self._numbers += 1
            place = site.place() if site is not None else {}
            shown = {"function": program.function, **place, **({"aside": True} if aside else {})}
            once = {"once": True} if program.value is not None else {}  # _EVENT_LINE expects it at the end
            self._line({"event": self._numbers, "in": group, "digest": program.digest, **shown, **once})
            return self._numbers

    def write_program(self, digest: str, record: Mapping[str, Any]) -> None:
        """Write the record behind a digest, once."""
        kept = {**record, "devices": pack_runs(record.get("devices"))}
        with self._lock:
            if self._bytes > self._tidy_at:
                self._forget_values()
                self._tidy_at = max(FULL_BYTES, self._bytes + MAX_EVENTS_BYTES // 8)
            if self._bytes > SHORT_BYTES:
                self._omit("the records of some programs")
                return
            if self._bytes > FULL_BYTES and kept.pop("arguments", None):
                self._omit("the arguments of some programs")
            self._last_program = digest
            self._line({"program": digest, "record": kept})

    def write_end(self, how: Mapping[str, Any]) -> None:
        """Write how the program ended: without this line, it may have gone on, or been killed."""
        told = {name: how.get(name) for name in ("state", "detail", "function", "filename", "line", "callers")}
        with self._lock:
            self._line({"end": told})

    def _omit(self, what: str) -> None:
        """Tell the readers of the recording that something is not in it."""
        if what not in self._omitted:
            self._omitted.add(what)
            self._append(json.dumps({"omitted": what}) + "\n")

    def _line(self, data: Mapping[str, Any]) -> None:
        text = json.dumps(data) + "\n"
        if self._bytes + len(text) <= MAX_EVENTS_BYTES and LATER not in self._omitted:
            self._bytes += len(text)
            self._append(text)
        elif LATER not in self._omitted:
            write_error(f"spmdlint: the recording {self._events} is full: no more calls are recorded.\n")
            self._omit(LATER)
            self._freeze()

    def _forget_values(self) -> None:
        """Drop the lines of asserted values, each of which is new, that are no longer among the last calls."""
        halves = memoryview(self._map)[_START:_TIMES].cast("I")
        needed, recent = set(halves[1::2].tolist()), self._numbers - RECENT_VALUES
        kept, digests = [], {self._last_program}  # the event of the last program comes next
        try:
            for text in self._events.read_text().splitlines(keepends=True):
                event = _EVENT_LINE.match(text)  # much faster than to parse the lines
                if event is None or not event[3] or int(event[1]) in needed or int(event[1]) > recent:
                    kept.append(text)
                    digests.add(event[2] if event is not None else "")
            texts = [text for text in kept if (found := _PROGRAM_LINE.match(text)) is None or found[1] in digests]
            scratch = self._events.with_suffix(".scratch")
            scratch.unlink(missing_ok=True)
            with _new(scratch) as file:
                file.write("".join(texts).encode())
            scratch.replace(self._events)
        except (OSError, ValueError, KeyError, TypeError):
            return
        self._bytes = sum(map(len, texts))

    def _append(self, text: str) -> None:
        if self._failed:
            return
        try:
            with self._events.open("a") as file:
                file.write(text)
        except OSError as error:
            self._failed = True
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

        def freeze() -> None:
            """Call after call would now take the place of calls that can still be read."""
            nonlocal halves
            halves = memoryview(bytearray(len(halves) * 4)).cast("I")
            self._frozen = True

        self._freeze = freeze

        def record_alone(event: Any) -> None:
            with lock:
                record(event)

        locked = getattr(sys, "_is_gil_enabled", lambda: True)
        return record if locked() else record_alone

    def checkpoint(self, written: int, groups: Mapping[str, tuple[int, int]]) -> None:
        """Write the count and the prefix of each group after this many calls, and the time."""
        if self._frozen:
            return
        self._times.add(written)
        text = json.dumps([written, groups], separators=(",", ":")).encode()
        if len(text) < SLOT:
            self._turn = turn = 1 - self._turn
            self._map[turn * SLOT : (turn + 1) * SLOT] = text.ljust(SLOT)


def _new(path: Path) -> BinaryIO:
    """A new file that only this user can read."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600), "w+b")


def pack_runs(numbers: Any) -> Any:
    """A long list of numbers as runs [first, length], as in {"runs": [[0, 8000]]}; other values as they are."""
    if not isinstance(numbers, list) or len(numbers) <= MANY:
        return numbers
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return {"runs": runs} if 2 * len(runs) < len(numbers) else numbers


def unpack_runs(packed: Any) -> Any:
    """The list that :func:`pack_runs` packed; other values as they are."""
    if not isinstance(packed, dict):
        return packed
    runs = [(int(first), int(many)) for first, many in packed["runs"]]
    if sum(many for _, many in runs) > MAX_UNPACKED:
        raise ValueError("a list that no recording has")
    return [first + n for first, many in runs for n in range(many)]


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
    lines = _lines(path)
    members, events = lines.members, lines.events
    calls = {low: number for low, number in _CALL.iter_unpack(data[_START:_TIMES]) if number}
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


@dataclass(slots=True)
class _Lines:
    """The lines of the second file by their kind."""

    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    events: dict[int, dict[str, Any]] = field(default_factory=dict)
    programs: dict[str, dict[str, Any]] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    def add(self, told: Mapping[str, Any]) -> None:
        """Add a line; raises ``KeyError``, ``TypeError`` or ``ValueError`` if it is none."""
        if "members" in told:
            self.members[str(told["group"])] = tuple(int(one) for one in told["members"])
        elif "event" in told:
            int(str(told["digest"]), 16)
            line = told.get("line")
            self.events[int(told["event"])] = {
                "group": str(told["in"]),
                "digest": str(told["digest"]),
                "function": _text(told.get("function")),
                "filename": _text(told.get("filename")),
                "line": line if isinstance(line, int) else None,
                "aside": told.get("aside") is True,
            }
        elif "end" in told:
            end = dict(told["end"])
            line = end.get("line")
            texts = {name: _text(end.get(name)) for name in ("state", "detail", "function", "filename")}
            callers = [one for one in end.get("callers") or () if isinstance(one, str)]
            self.end = {**texts, "line": line if isinstance(line, int) else None, "callers": callers}
        elif "omitted" in told:
            self.omitted.append(str(told["omitted"])[:100])
        elif "program" in told:
            record = dict(told["record"])
            self.programs[str(told["program"])] = {**record, "devices": unpack_runs(record.get("devices"))}


def _text(told: object) -> str | None:
    """A name in a recording, which comes from elsewhere; None for anything else."""
    return told if isinstance(told, str) else None


def _lines(path: Path) -> _Lines:
    lines = _Lines()
    try:
        texts = path.with_suffix(".events").read_text(errors="replace").splitlines()
    except OSError:
        return lines
    for text in texts:
        try:
            lines.add(json.loads(text))
        except (ValueError, KeyError, TypeError):
            continue
    return lines


def read_programs(path: Path) -> dict[str, dict[str, Any]]:
    """The records behind the digests in a recording."""
    return _lines(path).programs


def read_end(path: Path) -> dict[str, Any]:
    """How the program of a recording ended; nothing if that is not known."""
    return _lines(path).end


def read_omitted(path: Path) -> list[str]:
    """What is not in a recording because it was full, in words."""
    return _lines(path).omitted
