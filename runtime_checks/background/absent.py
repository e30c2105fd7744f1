"""Processes of a group that ended before they made a call in it.

They have published nothing there, so they cannot be compared; the first process of the group may be one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.background.publishing import PROCESSES_A_SECOND, Sample
from spmdlint.runtime_checks.calls.ledger import Group
from spmdlint.runtime_checks.recording.journal import Journal
from spmdlint.runtime_checks.transport.job import Job

AFTER = 1.5  # seconds without a call in this process, after which it asks how others ended
SELDOM = 60.0  # at most this many seconds between two questions
ASKED = 64  # processes that it asks about at a time


class Absent:
    """Asks how the others ended while this process makes no calls, less and less often."""

    def __init__(self, job: Job, others: OtherProcesses, journal: Journal) -> None:
        self._others = others
        self._journal = journal
        self._found: dict[str, dict[int, Sample]] = {}
        self._made = -1
        self._first_pause = max(AFTER, job.count / PROCESSES_A_SECOND)
        self._pause: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def among(self, group: Group, processes: Iterable[int], now: float) -> Mapping[int, Sample]:
        """The processes that have ended without a call in the group so far."""
        if self._journal.made != self._made:
            self._made = self._journal.made
            self._pause.clear()
            self._due.clear()
        found = self._found.setdefault(group.key, {})
        if group.key not in self._due:
            self._pause[group.key] = self._first_pause
            self._due[group.key] = now + self._first_pause
        elif now >= self._due[group.key]:
            self._pause[group.key] = min(SELDOM, 2 * self._pause[group.key])
            self._due[group.key] = now + self._pause[group.key]
            for process in [process for process in processes if process not in found][:ASKED]:
                ended = self._others.ended(process)
                if ended is not None and not (ended.get("counts") or {}).get(group.key):
                    found[process] = Sample(0, 0, state=str(ended.get("state")))
        return found
