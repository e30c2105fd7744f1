"""Queries to other processes: their last calls, and the record behind a digest."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spmdlint.runtime_checks.agreement.history import History, read_history
from spmdlint.runtime_checks.agreement.judging import Evidence
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.recording.reading import Replay, read, read_lines
from spmdlint.runtime_checks.records import Answer, GivenRecord, HistoryRecord, ProgramRecord, Question, State
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.packing import unpack

if TYPE_CHECKING:
    from spmdlint.runtime_checks.background.member import Background


MAX_CALLS = 1 << 17


class Asking(Evidence):
    """Questions go through the store, and wake the process asked; for a dead process, its recording is read."""

    def __init__(self, job: Job, others: OtherProcesses, background: Background) -> None:
        self._job = job
        self._others = others
        self._background = background
        self._programs: dict[tuple[int, str], ProgramRecord] = {}

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
        for process, answer in self._others.ask(living, {"history": many}).items():
            told = answer.get("history")
            if told is not None:
                found[process] = self._read(told, process)
        return found

    def _read(self, told: HistoryRecord, process: int | None = None) -> History:
        table, groups = told["table"], told["groups"]
        places = unpack(told["calls"], MAX_CALLS * 2)
        calls = [table[place] for place in array("H", places[: len(places) // 2 * 2]) if place < len(table)]
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

    def _answer(self, process: int, question: Question) -> Answer:
        """What a process answers, this one included; nothing if it has ended."""
        if process == self._job.me:
            return self._background.told(question)
        return {} if self._job.gone(process) is not None else self._others.ask([process], question).get(process, {})

    def texts(self, process: int, digest: str) -> Mapping[str, str]:
        """Asked for a call that differs."""
        return self._answer(process, {"texts": digest}).get("texts", {})

    def given(self, process: int, group: str, index: int) -> Mapping[str, GivenRecord]:
        """Asked for a call that was given other values."""
        return self._answer(process, {"given": (group, index)}).get("given", {})

    def program(self, process: int, digest: str) -> ProgramRecord:
        """Known by equal digests, which have equal decisive fields; otherwise read or asked for."""
        own = self._background.explained(digest)
        if own or process == self._job.me:
            return own
        key = (process, digest)
        known = self._programs.get(key, ProgramRecord())
        if "module" in known:
            return known
        path = self._job.recording_of(process)
        if path is not None:
            found = read_lines(path).programs.get(digest, ProgramRecord())
        else:
            found = self._answer(process, {"program": digest}).get("program", {})
        self._programs[key] = {**known, **found}
        return self._programs[key]
