"""The files through which a launcher and its processes on one machine communicate.

Files work when the key-value store does not: a killed process publishes nothing, but its launcher sees its death.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from spmdlint.runtime_checks.records import Gone, Place, State, UnknownRecordError, read_record
from spmdlint.runtime_checks.reporting.report import Report

MAX_FILE = 256 << 20  # the report of a large job is longer than a value in the store may be
T = TypeVar("T")


class RunFolder:
    """Small JSON files in the folder of a run; each is written atomically and by one writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _put(self, name: str, value: Mapping[str, object]) -> None:
        scratch = self.folder / f".{name}.{os.getpid()}"
        scratch.write_text(json.dumps(value))
        scratch.replace(self.folder / name)

    def _get(self, name: str, kind: type[T]) -> T | None:
        try:
            with (self.folder / name).open("rb") as file:
                return read_record(file.read(MAX_FILE + 1), kind, name, "in the folder of the run", MAX_FILE)
        except (OSError, UnknownRecordError):
            return None

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
        return self._get("report.json", Report)

    def put_gone(self, process: int, status: int) -> None:
        self._put(f"gone.{process}", Gone(status=status))

    def gone(self, process: int) -> int | None:
        """The exit status of a process that has ended, or None while it runs."""
        value = self._get(f"gone.{process}", Gone)
        return None if value is None else value["status"]

    def recording(self, process: int) -> Path:
        """Where a process records its calls, if it is not told to do so elsewhere."""
        return self.folder / f"{process}.ledger"

    def link_recording(self, process: int, path: Path) -> None:
        """Let the recording that a process makes elsewhere be found here, too."""
        for suffix in (".ledger", ".events"):
            link = self.recording(process).with_suffix(suffix)
            link.unlink(missing_ok=True)  # of a program that has enabled the checks twice
            link.symlink_to(path.with_suffix(suffix).absolute())

    def put_state(self, process: int, state: State) -> None:
        self._put(f"state.{process}", state)

    def state(self, process: int) -> State | None:
        """How a process ended or where it is, as it recorded itself."""
        return self._get(f"state.{process}", State)

    def put_joining(self, process: int, site: Place) -> None:
        """Record that a process waits in ``jax.distributed.initialize``, and from where."""
        self._put(f"joining.{process}", site)

    def put_joined(self, process: int) -> None:
        (self.folder / f"joining.{process}").unlink(missing_ok=True)
        self._put(f"joined.{process}", {})

    def joining(self, process: int) -> Place | None:
        """Where a process waits in ``jax.distributed.initialize``, or None if it does not."""
        return self._get(f"joining.{process}", Place)

    def joined(self, process: int) -> bool:
        """Whether a process ever was part of the job."""
        return (self.folder / f"joined.{process}").exists()

    def mark(self, word: str) -> None:
        """Announce "interrupted" to all processes, or ask "where" they are."""
        self._put(word, {"pid": os.getpid()})

    def marked(self, word: str) -> bool:
        """Whether the launcher has announced this."""
        return (self.folder / word).exists()
