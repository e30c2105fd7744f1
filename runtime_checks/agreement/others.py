"""What this process knows of the others: what they announced last, how they ended, where they are."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from spmdlint.runtime_checks.calls.ledger import Entry, Group
from spmdlint.runtime_checks.recording.this_process import ThisProcess
from spmdlint.runtime_checks.records import Message, Place, QuietRecord, State, Where
from spmdlint.runtime_checks.reporting.report import ProcessReport, reported
from spmdlint.runtime_checks.reporting.sentences import ended_word, unsaid
from spmdlint.runtime_checks.transport.job import Job

ANSWER_WITHIN = 1.5  # seconds for a process to answer a query for its position


class Whereabouts(Protocol):
    """What finds out where another process is."""

    def whereabouts(self, process: int) -> Where | None:
        """Where another process is now; None if it does not answer."""

    def lives(self, process: int) -> bool:
        """Whether the checks of another process answer."""


class OtherProcesses:
    """The other processes, as this one sees them. ``heard`` is the last call that each announced to this one."""

    def __init__(self, job: Job, own: ThisProcess) -> None:
        self._job = job
        self._own = own
        self._questions = 0
        self.heard: dict[int, Message] = {}

    def last_heard(self, process: int) -> Place:
        """The last call that another process announced to this one."""
        return self.heard.get(process) or Place()

    def ended(self, process: int) -> State | None:
        """How another process ended: its state and counts, or None while it runs."""
        told = self._job.exchange.state(process)
        if told is None:
            status = self._job.gone(process)
            if status is None:
                return None
            told = self._job.exchange.state(process)  # it may have published, and then ended, between the two looks
            if told is None:
                return self._ended_with(process, status)
        return {**told, "counts": told.get("counts") or {}}

    def _ended_with(self, process: int, status: int) -> State:
        """The end of a process that its launcher alone has seen."""
        heard = self.last_heard(process)
        counts = {group.key: min(group.count, heard.get("index") or 0) for group in self._own.ledger.groups()}
        return {**State(detail=unsaid(status), counts=counts), **heard, "state": "died"}

    def ended_among(self, processes: Iterable[int]) -> dict[int, State]:
        """How those of some processes ended that did: one request, as most run."""
        told = self._job.exchange.states()
        found = {}
        for process in processes:
            known = process in told or self._job.gone(process) is not None
            state = self.ended(process) if known else None
            if state is not None:
                found[process] = state
        return found

    def ended_report(self, process: int, state: State) -> ProcessReport:
        """An ended process, for a report."""
        one = reported(state, ended_word(state))
        one.detail = state.get("detail")
        one.stack = state.get("stack")
        if one.line is None:
            heard = self.last_heard(process)
            one.function, one.filename, one.line = heard.get("function"), heard.get("filename"), heard.get("line")
        return one

    def position(self, process: int, group: Group, entry: Entry) -> ProcessReport:
        """Where another process is, as asked through the store: at the same call, or late with its stack."""
        message = self._job.exchange.hear(group.key, entry.index, process, 20)
        if message is not None:
            return reported(message, "waiting")
        answer = self.whereabouts(process)
        seen: Place = answer or Place()
        one = reported({**self.last_heard(process), **seen}, "late" if answer else "unknown")
        if answer is not None:
            one.index = answer.get("counts", {}).get(group.key, 0)
            one.stack = answer.get("stack")
        return one

    def quiet_calls(self, group: Group) -> dict[int, list[QuietRecord]]:
        """The last calls without a collective of all processes of a group that have published them."""
        me = self._job.me
        found = {me: self._own.quiet.recent([group]).get(group.key, [])}
        for process in group.processes:
            if process != me and (told := self._job.exchange.quiet(process).get(group.key)):
                found[process] = told
        return found

    def whereabouts(self, process: int) -> Where | None:
        """Where another process is now: its watcher thread answers, unless the process is stopped."""
        exchange = self._job.exchange
        self._questions += 1
        before = exchange.stack(process)
        exchange.ask_stack(process, self._job.me * 1_000_000 + self._questions)
        limit = time.monotonic() + ANSWER_WITHIN
        while time.monotonic() < limit:
            answer = exchange.stack(process)
            if answer is not None and (before is None or answer.get("number") != before.get("number")):
                return answer  # maybe to another process, which asked at the same time
            time.sleep(0.05)
        return None

    def lives(self, process: int) -> bool:
        """Whether the checks of another process answer."""
        return self.whereabouts(process) is not None
