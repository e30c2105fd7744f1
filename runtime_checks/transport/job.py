"""The job as one process reaches it: its number there, its options, and its two ways to the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from spmdlint.runtime_checks.options import Options
from spmdlint.runtime_checks.records import Word
from spmdlint.runtime_checks.transport.exchange import Exchange
from spmdlint.runtime_checks.transport.runfolder import RunFolder
from spmdlint.runtime_checks.transport.store import Store, StoreLostError

PAUSES = (0.0, 0.5, 0.5)  # seconds before each round of waking those for which the store did not answer


class Job:
    """One process of a job: ``exchange`` reaches the others, and ``folder`` the launcher, None if there is none.

    ``wake_watcher`` wakes this process's own watcher thread, once there is one.
    """

    def __init__(self, store: Store, me: int, count: int, options: Options) -> None:
        self.me = me
        self.count = count
        self.options = options
        self.store = store
        self.exchange = Exchange(store, me)
        self.folder = RunFolder(options.run_folder) if options.run_folder else None
        self.wake_watcher: Callable[[], object] = lambda: None

    @property
    def others(self) -> list[int]:
        """All processes but this one."""
        return [process for process in range(self.count) if process != self.me]

    def wake_others(self, word: Word) -> None:
        """Wake the listener threads of all others, several times where the store does not answer."""
        left = self.others
        for pause in PAUSES:
            time.sleep(pause if left else 0.0)
            left = [process for process in left if not self._wakes(process, word)]

    def _wakes(self, process: int, word: Word) -> bool:
        try:
            self.exchange.wake(process, word)
        except StoreLostError:
            return False
        return True

    def gone(self, process: int) -> int | None:
        """The exit status of a process that a launcher saw end; None while it runs, or without a launcher."""
        return None if self.folder is None else self.folder.gone(process)

    def recording_of(self, process: int) -> Path | None:
        """The recording that a process left to its launcher before it ended; None while it runs."""
        return None if self.folder is None or self.gone(process) is None else self.folder.recording(process)

    def interrupted(self) -> bool:
        """Whether the launcher forwards an interrupt, which reaches processes at different times."""
        return self.folder is not None and self.folder.marked("interrupted")
