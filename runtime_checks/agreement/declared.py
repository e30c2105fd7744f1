"""How a job ends: one verdict for all processes, reported by each, without JAX's shutdown barrier.

The first process that can prove a divergence writes the verdict under one key; every other process adopts it. A process
exits with ``os._exit``: JAX's own exit waits up to 300 s for processes that will not come, and then ends with an
unrelated error. The process that hosts the coordination service exits last.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from spmdlint.runtime_checks.agreement.checks import Checks, StoodDownError
from spmdlint.runtime_checks.agreement.this_process import ThisProcess
from spmdlint.runtime_checks.errors import DivergenceError
from spmdlint.runtime_checks.options import DIVERGED_STATUS
from spmdlint.runtime_checks.records import UnknownRecordError
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import Report, as_text
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.store import StoreLostError

VERDICT_KEY = "verdict/job"
LAST_STEP = 0.5  # seconds that a process may need from its last word to its end, on a busy machine
LAST_WAIT = 12.0  # seconds that the service host waits for the others to exit, even if blocked in XLA


class Ending:
    """The verdict of the job as this process knows it, and the action that follows."""

    def __init__(self, job: Job, own: ThisProcess, checks: Checks) -> None:
        self._job = job
        self._own = own
        self._checks = checks
        self._told = threading.Event()
        self._mine = False  # whether this process declared the verdict
        self._leaving = threading.Lock()
        self.verdict: Report | None = None
        self.acknowledged = threading.Event()
        self.uncaught_since: float | None = None  # since when the exception ends the program

    def declare(self, report: Report) -> Report:
        """Make a report the job's verdict, or adopt the one that another process declared earlier."""
        report.add_build(self._own.build())
        report.notes = [*report.notes, *self._checks.notes]
        try:
            self._mine = self._job.store.put(VERDICT_KEY, report.as_data())
            if not self._mine:
                self.look()
        except StoreLostError:
            self._mine = True  # the process that proved it can still report it
        self.verdict = self.verdict or report
        return self.verdict

    def look(self) -> Report | None:
        """The job's verdict, if one was declared."""
        if self.verdict is None:
            self.verdict = self._job.store.get(VERDICT_KEY, Report)
        return self.verdict

    def settle(self, report: Report) -> None:
        """Declare a verdict to all processes and act on it; for a thread that makes calls."""
        self.declare(report)
        self.heed()

    def proclaim(self, report: Report) -> None:
        """Declare a verdict from another thread; the threads that make calls act on it."""
        self.declare(report)
        self._job.wake_all()

    def heed(self) -> None:
        """Act on the verdict, if there is one; under the policy "report", only the checks of this process end."""
        if self.look() is not None:
            self.act()
            self._checks.active = False
            raise StoodDownError

    def act(self) -> None:
        """Act on the verdict according to the policy: raise, exit, or report and continue."""
        report = self.verdict
        if report is None:
            return
        self.acknowledged.set()
        if self._job.options.on_divergence == "raise":
            if self._job.folder is None:
                self.tell()  # at once: the program may catch it
            raise DivergenceError(report)
        if self._job.options.on_divergence == "exit":
            self.leave()
        self.tell()

    def tell(self, *, uncaught: bool = False) -> None:
        """Write the report to standard error and to the launcher, once; ``uncaught``: the program ends now."""
        if uncaught:
            self.uncaught_since = time.monotonic()
        if self._told.is_set() or self.verdict is None:
            return
        self._told.set()
        if self._job.folder is not None:
            self._job.folder.put_report(self.verdict)
            words = f"spmdlint: {self.verdict.verdict}: see the report at the end of this run.\n"
        elif self._job.options.mode == "background" and not self._mine:
            # The full report appears once per job, not a thousand times in one log.
            named = {"spmdlint": self.verdict.verdict, "kind": self.verdict.kind, "index": self.verdict.index}
            words = json.dumps({**named, "process": self._job.me, "message": self.verdict.message}) + "\n"
        else:
            words = as_text(self.verdict) + self._ask_linter(self.verdict)
        write_error(words)

    @staticmethod
    def _ask_linter(report: Report) -> str:
        """How to ask the linter about a line of the report, which only a launcher does by itself."""
        told = next((one for one in report.processes.values() if one.filename and one.line), None)
        if told is None or not report.explained_by:
            return ""
        return f"  To ask the linter about a line: spmdlint explain {told.filename}:{told.line}\n"

    def leave(self) -> None:
        """Report, and end this process at once, from any thread."""
        if not self._leaving.acquire(blocking=False):
            time.sleep(60)  # another thread is already ending this process
        if threading.current_thread() is not threading.main_thread():
            # What the main thread raises from now on is a consequence. A function in Python would not do: an interrupt
            # that still waits for the main thread would be raised in it, and be shown.
            sys.excepthook, sys.unraisablehook = slice, id
        self.flush()
        self.tell()
        with suppress(StoreLostError):
            self._job.store.put(f"left/{self._job.me}", {}, replace=True)
        self._wait_if_host()
        os._exit(DIVERGED_STATUS)

    @staticmethod
    def flush() -> None:
        """Write what the program has printed."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue

    def _wait_if_host(self) -> None:
        if not hosts_service():
            return
        limit = time.monotonic() + LAST_WAIT
        try:
            while time.monotonic() < limit and len(self._left()) < self._job.count:
                time.sleep(0.05)
        except (StoreLostError, UnknownRecordError):
            return
        if self._job.count > 1:
            time.sleep(LAST_STEP)  # whoever is still there when the service goes is aborted by JAX

    def _left(self) -> set[int]:
        """The processes that exit, or that their backend has aborted."""
        died = {number for number, told in self._job.states.all().items() if told.get("state") == "died"}
        return died | {int(name) for name in self._job.store.texts("left") if name.isdigit()}


def hosts_service() -> bool:
    """Whether the coordination service runs in this process: if this process exits, the others abort."""
    distributed: Any = sys.modules.get("jax._src.distributed")
    service = getattr(getattr(distributed, "global_state", None), "service", None)
    return service is not None and not getattr(service, "elsewhere", False)
