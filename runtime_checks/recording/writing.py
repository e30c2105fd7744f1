"""The last calls of a process in two files that outlive it.

The first is a ring buffer of numbers in mapped memory, after two slots for counts and prefixes. Writing a call copies
eight bytes to memory that the kernel keeps, so that the process may be killed at any moment. The numbers stand for
events, each of which has a line of JSON in the second file, as has each program. From time to time the counts and
prefixes of all groups are written as checkpoints, from which a reader counts forwards and backwards.

Each job has a folder of its own: a restart must not delete the evidence of the crash before it.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from spmdlint.runtime_checks.records import Count, EventRecord, Hash, ProgramRecord, State
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.transport.packing import pack

CALLS = 1 << 16
SLOT = 1 << 14  # size of each of the two slots for counts and prefixes
CALL = struct.Struct("<II")
START = 2 * SLOT
SIZE = START + CALLS * CALL.size
WORD = (1 << 32) - 1
FULL_BYTES = 96 << 20  # of the second file; beyond it, records of programs are not written
MAX_EVENTS_BYTES = 128 << 20  # some 200,000 asserted values, each of which is new
LATER = "all later calls"
_JOB = re.compile(r"job-\d{8}_\d{6}_\d{6}")  # a folder of ours: schedulers have others, such as job-4711
KEPT = 4  # earlier jobs, each with up to some 130 MB for each process


class Checkpoint(NamedTuple):
    """How many calls had been made at some moment, and the count and the prefix of each group then."""

    written: Count
    groups: Mapping[str, tuple[Count, Hash]]


class Line(EventRecord, total=False):
    """A line of the second file, which is of one kind: a group with its members, an event in a group, a program with
    its record, packed, how the program ended, what was omitted, or what the process runs with.
    """

    members: list[Count]
    event: Count
    program: str
    record: str
    end: State
    omitted: str
    versions: dict[str, str]
    layers: dict[str, str]


class Recording:
    """The recording of one process of a job, readable by its user only.

    If it can no longer be written, or is full, this is said once, and in the recording.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        events = path.with_suffix(".events")
        _new(events).close()
        with _new(path) as file:
            if hasattr(os, "posix_fallocate"):
                # A hole in the file without room on the disk would kill the process at the first write.
                os.posix_fallocate(file.fileno(), 0, SIZE)
            else:
                file.truncate(SIZE)
            self._map = mmap.mmap(file.fileno(), SIZE)
        self._events = events
        self._bytes = 0
        self._failed = False
        self._freeze: Callable[[], None] = lambda: None
        self._frozen = False
        self._turn = 0
        self._numbers = 0
        self._groups: set[str] = set()
        self._lock = threading.Lock()
        self._omitted: set[str] = set()

    def add_event(self, event: EventRecord, members: Sequence[int]) -> int:
        """Write the event of a call among these processes, and return its number."""
        with self._lock:
            if event["group"] not in self._groups:
                self._groups.add(event["group"])
                self._line({"group": event["group"], "members": list(members)})
            self._numbers += 1
            self._line({**Line(event=self._numbers), **event})
            return self._numbers

    def write_program(self, digest: str, record: ProgramRecord) -> None:
        """Write the record behind a digest, once."""
        with self._lock:
            if self._bytes > FULL_BYTES:
                self._omit("the records of some programs")
            else:
                self._line({"program": digest, "record": pack(json.dumps(record).encode())})

    def write(self, line: Line) -> None:
        """Write a line that stands for itself."""
        with self._lock:
            self._line(line)

    def _omit(self, what: str) -> None:
        """Tell the readers of the recording that something is not in it."""
        if what not in self._omitted:
            self._omitted.add(what)
            self._append(json.dumps({"omitted": what}) + "\n")

    def _line(self, data: Line) -> None:
        text = json.dumps(data) + "\n"
        if self._bytes + len(text) <= MAX_EVENTS_BYTES and LATER not in self._omitted:
            self._bytes += len(text)
            self._append(text)
        elif LATER not in self._omitted:
            write_error(f"spmdlint: the recording {self._events} is full: no more calls are recorded.\n")
            self._omit(LATER)
            self._freeze()

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
        halves = memoryview(self._map)[START:].cast("I")
        last, word, written = CALLS - 1, WORD, 0

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
        """Write the count and the prefix of each group after this many calls."""
        if self._frozen:
            return
        text = json.dumps(Checkpoint(written, groups), separators=(",", ":")).encode()
        if len(text) < SLOT:
            self._turn = turn = 1 - self._turn
            self._map[turn * SLOT : (turn + 1) * SLOT] = text.ljust(SLOT)


def _new(path: Path) -> BinaryIO:
    """A new file that only this user can read."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600), "w+b")


def folder_of(folder: Path, job: str) -> Path:
    """The folder of one job, below the one for all."""
    return folder / f"job-{job}"


def jobs_in(folder: Path) -> list[Path]:
    """The folders of the recorded jobs, the last job first: their names begin with the time."""
    return sorted((path for path in folder.glob("job-*") if _JOB.fullmatch(path.name) and path.is_dir()), reverse=True)


def forget_old(folder: Path) -> None:
    """Delete all but the last jobs."""
    for old in jobs_in(folder)[KEPT + 1 :]:
        shutil.rmtree(old, ignore_errors=True)
