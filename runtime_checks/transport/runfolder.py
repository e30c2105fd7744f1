"""The files through which a launcher and its processes on one machine communicate.

Files work when the key-value store does not: a killed process publishes nothing, but its launcher sees its death.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class RunFolder:
    """Small JSON files in the folder of a run; each is written atomically and by one writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _put(self, name: str, value: Any) -> None:
        scratch = self.folder / f".{name}.{os.getpid()}"
        scratch.write_text(json.dumps(value))
        scratch.replace(self.folder / name)

    def _get(self, name: str) -> dict[str, Any] | None:
        try:
            value = json.loads((self.folder / name).read_text())
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def put_report(self, report: dict[str, Any]) -> None:
        """Write the report of the job; the first one stays."""
        scratch = self.folder / f".report.{os.getpid()}"
        scratch.write_text(json.dumps(report))
        try:
            os.link(scratch, self.folder / "report.json")
        except FileExistsError:
            pass
        finally:
            scratch.unlink(missing_ok=True)

    def report(self) -> dict[str, Any] | None:
        """The report that a process wrote, or None."""
        return self._get("report.json")

    def put_gone(self, process: int, status: int) -> None:
        """Record that a process has ended, with its exit status (negative: the signal)."""
        self._put(f"gone.{process}", {"status": status})

    def gone(self, process: int) -> int | None:
        """The exit status of a process that has ended, or None while it runs."""
        value = self._get(f"gone.{process}")
        return None if value is None else int(value["status"])

    def put_state(self, process: int, state: dict[str, Any]) -> None:
        """Record how a process ended, or where it is at a time-out."""
        self._put(f"state.{process}", state)

    def state(self, process: int) -> dict[str, Any] | None:
        """How a process ended or where it is, as it recorded itself."""
        return self._get(f"state.{process}")

    def put_joining(self, process: int, site: dict[str, Any]) -> None:
        """Record that a process waits in ``jax.distributed.initialize``, and from where."""
        self._put(f"joining.{process}", site)

    def put_joined(self, process: int) -> None:
        """Record that ``jax.distributed.initialize`` has returned."""
        (self.folder / f"joining.{process}").unlink(missing_ok=True)
        self._put(f"joined.{process}", {})

    def joining(self, process: int) -> dict[str, Any] | None:
        """Where a process waits in ``jax.distributed.initialize``, or None if it does not."""
        return self._get(f"joining.{process}")

    def joined(self, process: int) -> bool:
        """Whether a process ever was part of the job."""
        return (self.folder / f"joined.{process}").exists()

    def mark(self, word: str) -> None:
        """Announce "interrupted" or "timeout" to all processes."""
        self._put(word, {"pid": os.getpid()})

    def marked(self, word: str) -> bool:
        """Whether the launcher has announced this."""
        return (self.folder / word).exists()
