"""How a job ends: one verdict for all processes, told by each, without JAX's shutdown barrier.

The first process that can prove a divergence writes the verdict under one key; every other takes that one. A process
that leaves does so with ``os._exit``: JAX's own exit waits up to 300 s for processes that will not come, and then
ends with an error that blames somebody else. The process that hosts the coordination service leaves last.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from spmdlint.runtime_checks.errors import DivergenceError
from spmdlint.runtime_checks.options import DIVERGED_STATUS, Options
from spmdlint.runtime_checks.report import Report, as_text, from_data
from spmdlint.runtime_checks.runfolder import RunFolder
from spmdlint.runtime_checks.store import Store, StoreLostError

VERDICT_KEY = "verdict/job"
LAST_WAIT = 12.0  # seconds for which the host of the service waits for the others to leave, also when blocked in XLA


class Ending:
    """The verdict of the job as this process knows it, and what it does about it."""

    def __init__(self, store: Store, me: int, count: int, options: Options, complete: Callable[[Report], None]) -> None:
        self._store = store
        self._me = me
        self._count = count
        self._options = options
        self._complete = complete
        self._folder = RunFolder(options.run_folder) if options.run_folder else None
        self._told = threading.Event()
        self._mine = False  # whether it was this process that declared the verdict
        self._leaving = threading.Lock()
        self.verdict: Report | None = None
        self.acknowledged = threading.Event()

    def declare(self, report: Report) -> Report:
        """Make a report the job's verdict, or take the one that another process declared before."""
        self._complete(report)
        try:
            self._mine = self._store.put(VERDICT_KEY, report.as_data())
            if not self._mine:
                self.look()
        except StoreLostError:
            self._mine = True  # the one who proved it can still tell
        self.verdict = self.verdict or report
        return self.verdict

    def look(self) -> Report | None:
        """The job's verdict, if one was declared."""
        if self.verdict is None:
            data = self._store.get(VERDICT_KEY)
            if data is not None:
                self.verdict = from_data(data)
        return self.verdict

    def word(self) -> dict[str, Any]:
        """The verdict in a few words, for those who only have to tell it."""
        if self.verdict is None:
            return {}
        told = self.verdict
        return {"verdict": {"verdict": told.verdict, "kind": told.kind, "index": told.index, "message": told.message}}

    def hear(self, word: Mapping[str, Any]) -> None:
        """Take over the verdict that another process gives with a word: in full only where more than that is told."""
        if self._options.on_divergence != "report" or self._folder is not None:
            self.look()
        elif self.verdict is None:
            self.verdict = from_data(word)

    def act(self) -> None:
        """Do as the policy says about the verdict: raise, leave, or tell and go on."""
        report = self.verdict
        if report is None:
            return
        self.acknowledged.set()
        if self._options.on_divergence == "raise":
            raise DivergenceError(report)
        if self._options.on_divergence == "exit":
            self.leave()
        self.tell()

    def tell(self) -> None:
        """Write the report to the standard error and to the launcher, once."""
        if self._told.is_set() or self.verdict is None:
            return
        self._told.set()
        if self._folder is not None:
            self._folder.put_report(self.verdict.as_data())
            words = f"spmdlint: {self.verdict.verdict} ({self.verdict.kind}): {self.verdict.message}\n"
        elif self._options.mode == "background" and not self._mine:
            # In full once in a job: a thousand copies in one log help nobody.
            named = {"spmdlint": self.verdict.verdict, "kind": self.verdict.kind, "index": self.verdict.index}
            words = json.dumps({**named, "process": self._me, "message": self.verdict.message}) + "\n"
        else:
            words = as_text(self.verdict)
        write_error(words)

    def leave(self, status: int = DIVERGED_STATUS) -> None:
        """Tell, and end this process at once, from whatever thread."""
        if not self._leaving.acquire(blocking=False):
            time.sleep(60)  # another thread of this process is leaving
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        self.tell()
        self._say_left()
        self._wait_if_host()
        os._exit(status)

    def _say_left(self) -> None:
        try:
            self._store.put(f"left/{self._me}", {}, replace=True)
        except StoreLostError:
            return

    def _wait_if_host(self) -> None:
        if not hosts_service():
            return
        limit = time.monotonic() + LAST_WAIT
        try:
            while time.monotonic() < limit and len(self._store.children("left")) < self._count:
                time.sleep(0.05)
        except StoreLostError:
            return


def hosts_service() -> bool:
    """Whether the coordination service lives in this process: when it leaves, the others abort."""
    distributed: Any = sys.modules.get("jax._src.distributed")
    service = getattr(getattr(distributed, "global_state", None), "service", None)
    return service is not None and not getattr(service, "elsewhere", False)


def write_error(words: str) -> None:
    """Write to the standard error past Python's buffers: the process may end in the next moment."""
    data = words.encode(errors="replace")
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        return
