"""Comparing the preflight records of a job, each pair once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spmdlint.runtime_checks import preflight
from spmdlint.runtime_checks.bounded import BLOCKED_AFTER, BoundedLock
from spmdlint.runtime_checks.ending import write_error
from spmdlint.runtime_checks.report import ProcessReport, Report, diverged

if TYPE_CHECKING:
    from spmdlint.runtime_checks.session import Session

MAX_TOLD = 5  # source files named in one line


class Setup:
    """The preflight record of this process, and those it was compared with. Also used from the watcher thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._mine: dict[str, Any] | None = None
        self._compared = {session.me}
        self._lock = BoundedLock(BLOCKED_AFTER)

    @property
    def compared(self) -> bool:
        """Whether this process was compared with another."""
        return len(self._compared) > 1

    def publish(self) -> None:
        """Publish this process's record, once its devices are up."""
        with self._lock:
            if self._mine is None and preflight.devices_are_up():
                self._mine = preflight.record()
                self._session.exchange.put_preflight(self._mine)

    def _tell_sources(self, process: int, paths: list[str]) -> None:
        """Report files that differ. It is not a verdict, because only a comment may differ."""
        for path in paths:
            self._session.note(f"{path} differs between process {self._session.me} and process {process}.")
        if paths:
            words = ", ".join(paths[:MAX_TOLD]) + (
                f" and {len(paths) - MAX_TOLD} more" if len(paths) > MAX_TOLD else ""
            )
            me = self._session.me
            write_error(f"spmdlint: source files of process {me} and process {process} differ: {words}.\n")

    def compare_with(self, process: int) -> Report | None:
        """A report if this process and another were set up differently; None if not, or if the other's is unknown."""
        self.publish()
        if self._mine is None or process in self._compared:
            return None
        theirs = self._session.exchange.preflight(process)
        if theirs is None:
            return None
        self._compared.add(process)
        self._tell_sources(process, preflight.different_sources(self._mine, theirs))
        found = preflight.difference(self._mine, theirs)
        if found is None:
            return None
        words, mine, other = found
        me = self._session.me
        message = f"{words} differs: process {me}: {mine}; process {process}: {other}."
        sides = {me: ProcessReport("running", detail=f"{words}: {mine}")}
        sides[process] = ProcessReport("running", detail=f"{words}: {other}")
        return diverged("setup", message, None, sides)
