"""The last calls of a process in two files that outlive it.

The first is a ring buffer of numbers in mapped memory, after two slots for counts and prefixes. Writing a call copies
eight bytes to memory that the kernel keeps, so that the process may be killed at any moment. The numbers stand for
events, each of which has a line of JSON in the second file, as has each program. From time to time the counts and
prefixes of all groups are written as checkpoints, from which a reader counts forwards and backwards.

Recordings of earlier jobs in a folder are kept: a restart must not delete the evidence of the crash before it.
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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypedDict

from spmdlint.runtime_checks.records import (
    Count,
    EventRecord,
    Hash,
    Name,
    ProgramRecord,
    State,
    UnknownRecordError,
    read_record,
)
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.transport.packing import pack

CALLS = 1 << 16
SLOT = 1 << 14  # size of each of the two slots for counts and prefixes
CALL = struct.Struct("<II")
START = 2 * SLOT
SIZE = START + CALLS * CALL.size
WORD = (1 << 32) - 1
FULL_BYTES = 24 << 20  # of the second file; beyond it, records of programs are written without their arguments
SHORT_BYTES = 48 << 20  # beyond this, records of programs are not written
MAX_EVENTS_BYTES = 64 << 20
_EVENT_LINE = re.compile(r'\{"event": (\d+), "group": "\w+", "digest": "(\w+)".*?("once": true)?\}$')
_PROGRAM_LINE = re.compile(r'\{"program": "(\w+)"')
LATER = "all later calls"
RECENT_VALUES = 256  # asserted values that may still be called, whether recorded or not
KEPT = 4  # earlier jobs, each with up to some 65 MB for each process
LOCKED_WITHIN = 5.0  # seconds for the other processes of a job, each of which moves some files at most
UNNAMED = "unnamed"
IN_USE = ".in-use"  # locked by the launcher whose job writes to the folder
_RECORDING = re.compile(r"^\d+\.(ledger|events)$")
_FOLDER = re.compile(r"^job-[\w-]+$")


class Checkpoint(NamedTuple):
    """How many calls had been made at some moment, and the count and the prefix of each group then."""

    written: Count
    groups: Mapping[str, tuple[Count, Hash]]


class Line(EventRecord, total=False):
    """A line of the second file, which is of one kind: the job, a group with its members, an event in a group, a
    program with its record, packed, how the program ended, what was omitted, or what the process runs with.
    """

    job: Name
    members: list[Count]
    event: Count
    once: bool
    program: str
    record: str
    end: State
    omitted: str
    versions: dict[str, str]
    layers: dict[str, str]


class Recording:
    """The recording of one process of a job, readable by its user only.

    If it can no longer be written, or is full, this is said once, and in the recording. A recording of an earlier job
    at the same path is kept beside it.
    """

    def __init__(self, path: Path, job: str = UNNAMED) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        events = path.with_suffix(".events")
        with alone_in(path.parent):
            set_aside(path, job)
            with _new(events) as file:
                # First of all: another process takes a recording without it for one of an earlier job.
                file.write((json.dumps({"job": job}) + "\n").encode())
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
        self._tidy_at = FULL_BYTES
        self._last_program = ""
        self._freeze: Callable[[], None] = lambda: None
        self._frozen = False
        self._turn = 0
        self._numbers = 0
        self._groups: set[str] = set()
        self._lock = threading.Lock()
        self._omitted: set[str] = set()

    def add_event(self, event: EventRecord, members: Sequence[int], *, once: bool = False) -> int:
        """Write the event of a call among these processes, and return its number; most of ``once`` are not repeated."""
        with self._lock:
            if event["group"] not in self._groups:
                self._groups.add(event["group"])
                self._line({"group": event["group"], "members": list(members)})
            self._numbers += 1
            line: Line = {**Line(event=self._numbers), **event}
            self._line({**line, "once": True} if once else line)  # _EVENT_LINE expects it at the end
            return self._numbers

    def write_program(self, digest: str, record: ProgramRecord) -> None:
        """Write the record behind a digest, once."""
        with self._lock:
            if self._bytes > self._tidy_at:
                self._forget_values()
                self._tidy_at = max(FULL_BYTES, self._bytes + MAX_EVENTS_BYTES // 8)
            if self._bytes > SHORT_BYTES:
                self._omit("the records of some programs")
                return
            if self._bytes > FULL_BYTES and record.get("arguments"):
                self._omit("the arguments of some programs")
                record = {**record}
                del record["arguments"]
            self._last_program = digest
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

    def _forget_values(self) -> None:
        """Drop the lines of asserted values, each of which is new, that are no longer among the last calls."""
        halves = memoryview(self._map)[START:].cast("I")
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


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep the other processes of a job from moving or beginning recordings in a folder that they share.

    The lock ends with its process at the latest. Where it is not free for long, this one goes on without.
    """
    with _opened(folder, os.O_RDONLY) as file:
        if file is not None:
            lock(file, LOCKED_WITHIN)
        yield


@contextmanager
def only_run_in(folder: Path) -> Iterator[bool]:
    """Whether no other launcher on this machine uses a folder; if so, none will until this ends."""
    path = folder / IN_USE
    while True:
        with _opened(path, os.O_RDWR | os.O_CREAT) as file:
            free = file is None or lock(file)
            if file is not None and free and not _is_at(file, path):
                continue  # the run that has just ended has removed it
            try:
                yield free
            finally:
                if file is not None and free:
                    with suppress(OSError):
                        path.unlink()
            return


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int | None]:
    try:
        file = os.open(path, flags, 0o600)
    except OSError:
        yield None
        return
    try:
        yield file
    finally:
        os.close(file)


def lock(file: int, within: float = 0.0) -> bool:
    """Lock an open file, within so many seconds; whether no other process on this machine has it, until it is closed.

    Where the file system has no locks, that is taken to be so.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    limit = time.monotonic() + within
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= limit:
                return False
            time.sleep(0.01)
        except OSError:
            return True
        else:
            return True


def set_aside(ledger: Path, job: str) -> None:
    """Move the recordings of other jobs in this folder, and one at this path, into folders of their jobs.

    The first process of a job moves those of all processes of the job before, which may have had more of them. The
    others find a recording of their own job.
    """
    folder, own = ledger.parent, ledger.stem
    others = (path.stem for path in folder.iterdir() if _RECORDING.match(path.name) and path.stem != own)
    first = next(others, None)
    if first is not None and job_of(folder / f"{first}.events") != job:
        for stem in {first, *others}:
            if job_of(folder / f"{stem}.events") != job:
                _move(folder / f"{stem}.ledger")
    _move(ledger)
    for old in earlier(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def _move(ledger: Path) -> None:
    """Move the two files of a recording, if they are there, into the folder of its job."""
    events = ledger.with_suffix(".events")
    if not ledger.exists() and not events.exists():
        return
    job, number = job_of(events), 1
    while True:
        folder = ledger.parent / (f"job-{job}" if number == 1 else f"job-{job}-{number}")
        if not (folder / ledger.name).exists() and not (folder / events.name).exists():
            break
        number += 1  # a process that was restarted within its job
    folder.mkdir(exist_ok=True)
    for path in (ledger, events):
        with suppress(FileNotFoundError):  # without a lock, another process may have moved it
            path.replace(folder / path.name)


def earlier(folder: Path) -> list[Path]:
    """The folders with the recordings of earlier jobs, the last job first."""
    found = [path for path in folder.glob("job-*") if _FOLDER.match(path.name) and path.is_dir()]
    return sorted(found, key=_made, reverse=True)


def earlier_jobs(folder: Path) -> list[str]:
    """The sentence on these folders, if there are any."""
    named = ", ".join(map(str, earlier(folder)))
    return [f"Earlier jobs are recorded in {named}."] if named else []


class FirstLine(TypedDict):
    """The first line of a recording's second file, as far as it names the job."""

    job: Name


def job_of(events: Path) -> str:
    """The name of the job that a recording belongs to."""
    try:
        with events.open("rb") as file:
            return read_record(file.readline(1000), FirstLine, "of the job", "of a recording")["job"]
    except (OSError, UnknownRecordError):
        return UNNAMED


def _made(folder: Path) -> float:
    """When the last recording was moved into a folder, which the job after it does when it begins."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0  # another process has just deleted it
