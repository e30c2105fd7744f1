"""The files through which a launcher and its processes on one machine communicate.

Files work when the key-value store does not: a killed process publishes nothing, but its launcher sees its death.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from spmdlint.runtime_checks.records import Gone, Nothing, Place, State, UnknownRecordError, read_record
from spmdlint.runtime_checks.reporting.report import Report

MAX_FILE = 256 << 20  # the report of a large job is longer than a value in the store may be
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Files(Generic[T]):
    """Small JSON files of one kind, one for each process; each is written atomically and by one writer."""

    folder: Path
    name: str
    kind: type[T]

    def put(self, process: int, value: T) -> None:
        scratch = self.folder / f".{self.name}.{process}.{os.getpid()}"
        scratch.write_text(json.dumps(value))
        scratch.replace(self.folder / f"{self.name}.{process}")

    def get(self, process: int) -> T | None:
        return _read(self.folder / f"{self.name}.{process}", self.kind)


class RunFolder:
    """The folder of a run: beside the files of processes, the report, recordings, and what the launcher announces.

    ``ended`` is how processes ended, as their launcher saw it, and ``states`` how they ended or where they are, as they
    say. ``joining`` is where they entered ``jax.distributed.initialize``, and ``joined`` has all that came out of it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ended = Files(folder, "gone", Gone)
        self.states = Files(folder, "state", State)
        self.joining = Files(folder, "joining", Place)
        self.joined = Files(folder, "joined", Nothing)

    def put_report(self, report: Report) -> None:
        """Write the report of the job; the first one stays."""
        scratch = self.folder / f".report.{os.getpid()}"
        scratch.write_text(json.dumps(report.as_data()))
        try:
            os.link(scratch, self.folder / "report.json")
        except FileExistsError:
            pass
        finally:
            scratch.unlink(missing_ok=True)

    def report(self) -> Report | None:
        return _read(self.folder / "report.json", Report)

    def recording(self, process: int) -> Path:
        """Where a process records its calls, if it is not told to do so elsewhere."""
        return self.folder / f"{process}.ledger"

    def link_recording(self, process: int, path: Path) -> None:
        """Let the recording that a process makes be found here, also where it makes it elsewhere."""
        for suffix in (".ledger", ".events"):
            link, there = (one.with_suffix(suffix) for one in (self.recording(process), path))
            link.unlink(missing_ok=True)  # of a program that has enabled the checks twice
            if link != there:
                link.symlink_to(there.absolute())

    def mark(self, word: str) -> None:
        """Ask all processes "where" they are."""
        (self.folder / word).touch()

    def marked(self, word: str) -> bool:
        """Whether the launcher has announced this."""
        return (self.folder / word).exists()


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        with path.open("rb") as file:
            return read_record(file.read(MAX_FILE + 1), kind, path.name, "in the folder of the run", MAX_FILE)
    except (OSError, UnknownRecordError):
        return None
