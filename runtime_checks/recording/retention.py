"""Recordings of earlier jobs in a folder: a restart must not delete the evidence of the crash before it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TypedDict

from spmdlint.runtime_checks.records import Name, UnknownRecordError, read_record

KEPT = 4  # earlier jobs, each with up to some 65 MB for each process
UNNAMED = "unnamed"
_FOLDER = re.compile(r"^job-[\w-]+$")


def set_aside(ledger: Path) -> None:
    """Move the recording at this path, if there is one, into the folder of its job, beside the new one."""
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
        if path.exists():
            path.replace(folder / path.name)
    for old in earlier(ledger.parent)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def earlier(folder: Path) -> list[Path]:
    """The folders with the recordings of earlier jobs, the last job first."""
    found = [path for path in folder.glob("job-*") if _FOLDER.match(path.name) and path.is_dir()]
    return sorted(found, key=_made, reverse=True)


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
    """When the last recording in a folder was last written to."""
    times = []
    for path in folder.glob("*.ledger"):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue  # another process has just deleted it
    return max(times, default=0.0)
