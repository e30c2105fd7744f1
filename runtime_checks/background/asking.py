"""Queries to other processes: their last calls, the record behind a digest, their current position."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spmdlint.runtime_checks.agreement.history import History, Programs, Texts, Told, read_history
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.recording.reading import Replay, read, read_lines, unpack
from spmdlint.runtime_checks.records import Answer, GivenRecord, HistoryRecord, ProgramRecord, Question, State, Where
from spmdlint.runtime_checks.transport.job import Job

if TYPE_CHECKING:
    from spmdlint.runtime_checks.background.member import Background

ANSWERS_WITHIN = 2.5  # seconds for all answers


class Asking:
    """Questions go through the store, and wake the process asked; for a dead process, its recording is read.

    ``meanwhile`` is called while answers are awaited: two processes that ask each other at once both have to answer.
    """

    def __init__(self, job: Job, others: OtherProcesses, background: Background) -> None:
        self._job = job
        self._others = others
        self._background = background
        self._number = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self._programs: dict[tuple[int, str], ProgramRecord] = {}

    def ask(self, processes: Iterable[int], question: Question) -> dict[int, Answer]:
        """Ask several processes a question; returns the answers that came in time."""
        exchange = self._job.exchange
        self._number += 1
        waiting = set(processes)
        for process in sorted(waiting):
            exchange.put_question(process, {**question, "number": self._number})
            exchange.wake(process)
        answers: dict[int, Answer] = {}
        limit, pause = time.monotonic() + ANSWERS_WITHIN, 0.01
        while waiting and time.monotonic() < limit:
            for process in sorted(waiting):
                answer = exchange.answer(process)
                if answer is not None and answer.get("number") == self._number:
                    answers[process] = answer
                    waiting.discard(process)
            self.meanwhile()
            if waiting:
                time.sleep(pause)
                pause = min(0.1, pause * 1.5)
        return answers

    def histories(self, processes: Iterable[int], many: int) -> dict[int, History]:
        """The last calls of these processes, as far as they are available."""
        found: dict[int, History] = {}
        living = []
        for process in processes:
            if process == self._job.me:
                found[process] = self._read(self._background.history(many))
            elif (dead := self._dead(process)) is not None:
                found[process] = dead
            else:
                living.append(process)
        for process, answer in self.ask(living, {"history": many}).items():
            told = answer.get("history")
            if told is not None:
                found[process] = self._read(told, process)
        return found

    def _read(self, told: HistoryRecord, process: int | None = None) -> History:
        table, groups = told["table"], told["groups"]
        calls = [table[place] for place in unpack(told["calls"]) if place < len(table)]
        given = {(group, index): digest for group, index, digest in told["given"]}
        rows = [
            replace(row, given=given[row.group, row.index]) if (row.group, row.index) in given else row
            for row in Replay(told["members"], groups).back(calls)
        ]
        history = read_history(told["state"], rows, told["end"])
        history.counts.update({key: count for key, (count, _) in groups.items()})
        history.members.update({key: tuple(members) for key, members in told["members"].items()})
        history.quiet = told["quiet"]
        for one in table:
            if process is not None and "defined_at" in one:
                brief: ProgramRecord = {"function": one["function"], "defined_at": one["defined_at"]}
                self._programs.setdefault((process, one["digest"]), brief)
        return history

    def _dead(self, process: int) -> History | None:
        """The recording of a process that died before it could publish."""
        path = self._job.recording_of(process)
        if path is None:
            return None
        ended = self._others.ended(process) or State(state="died")
        return read_history(str(ended["state"]), read(path), ended)

    def texts(self, process: int, digest: str) -> dict[str, str]:
        """The lowered module of a living process's program, packed."""
        if process == self._job.me:
            return self._background.texts(digest)
        if self._job.gone(process) is not None:
            return {}
        return self.ask([process], {"texts": digest}).get(process, Answer()).get("texts") or {}

    @property
    def about(self) -> tuple[Programs, Texts, Told]:
        """The questions about calls that differ."""
        return self.program, self.texts, self.given

    def given(self, process: int, group: str, index: int) -> dict[str, GivenRecord]:
        """What a living process's call was given."""
        if process == self._job.me:
            return self._background.given(group, index)
        if self._job.gone(process) is not None:
            return {}
        return self.ask([process], {"given": (group, index)}).get(process, Answer()).get("given") or {}

    def program(self, process: int, digest: str) -> ProgramRecord:
        """The record behind a process's digest, as far as it is available."""
        own = self._background.explained(digest)
        if own or process == self._job.me:
            return own  # equal digests have equal decisive fields
        key = (process, digest)
        known = self._programs.get(key, ProgramRecord())
        if "module" in known:
            return known
        path = self._job.recording_of(process)
        if path is not None:
            found = read_lines(path).programs.get(digest, ProgramRecord())
        else:
            answer = self.ask([process], {"program": digest}).get(process, Answer())
            found = answer.get("program") or ProgramRecord()
        self._programs[key] = {**known, **found}
        return self._programs[key]

    def whereabouts(self, process: int) -> Where | None:
        """Where another process is now; None if it does not answer."""
        return self.ask([process], {"stack": True}).get(process, Answer()).get("where")

    def lives(self, process: int) -> bool:
        """Whether the checks of another process answer."""
        return bool(self.ask([process], {}))
