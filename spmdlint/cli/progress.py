"""A progress bar for runs that take long."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds after which the bar appears."""


class ProgressBar:
    """Called with the number of files done and in total; shows a bar on a terminal if the run takes a while."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Record how far the run is."""
        if self._bar is None:
            if time.monotonic() - self._since < PATIENCE or not sys.stderr.isatty():
                return
            self._start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> None:
        # Importing rich takes longer than linting a small file.
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("Linting", total=None)
        self._bar.start()
