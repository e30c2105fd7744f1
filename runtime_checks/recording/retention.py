"""Recordings of earlier jobs in a folder: a restart must not delete the evidence of the crash before it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from spmdlint.runtime_checks.records import Name, UnknownRecordError, read_record

KEPT = 4  # earlier jobs, each with up to some 65 MB for each process
LOCKED_WITHIN = 5.0  # seconds for the other processes of a job, each of which moves some files at most
UNNAMED = "unnamed"
IN_USE = ".in-use"  # locked by the launcher whose job writes to the folder
_RECORDING = re.compile(r"^\d+\.(ledger|events)$")
_FOLDER = re.compile(r"^job-[\w-]+$")


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
