"""What this process knows of the others: what they announced last, how they ended, where they are, and their calls.

Questions go through the store, and wake the process asked; of one that has died, its recording is read.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence

from spmdlint.runtime_checks.agreement.checks import Checks
from spmdlint.runtime_checks.agreement.history import History, read_history
from spmdlint.runtime_checks.agreement.judging import Evidence
from spmdlint.runtime_checks.agreement.this_process import ThisProcess
from spmdlint.runtime_checks.calls.ledger import Entry, Group
from spmdlint.runtime_checks.recording.reading import read, read_lines, rows_of
from spmdlint.runtime_checks.records import (
    Answer,
    GivenRecord,
    HistoryRecord,
    Message,
    Place,
    ProgramRecord,
    Question,
    QuietRecord,
    State,
)
from spmdlint.runtime_checks.reporting.report import ProcessReport, ended, reported
from spmdlint.runtime_checks.reporting.sentences import ended_word, unsaid
from spmdlint.runtime_checks.transport.bounded import BoundedLock
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.packing import unpack

ANSWERS_WITHIN = 2.5  # seconds for all answers to a question
ASK_EVERY = 4.0  # seconds between two questions to an awaited process; in a large job, as long as
ASKED = 64  # of all processes together take in a second
SILENT = 15.0  # seconds without an answer after which it counts as one without checks
MAX_CALLS = 1 << 17


class OtherProcesses(Evidence):
    """The other processes, as this one sees them. ``heard`` is the last call that each announced to this one.

    ``meanwhile`` is called while answers are awaited: two processes that ask each other at once both have to answer.
    """

    def __init__(self, job: Job, own: ThisProcess) -> None:
        self._job = job
        self._own = own
        self._number = 0
        self._asking = BoundedLock()
        self.meanwhile: Callable[[], object] = lambda: None
        self.heard: dict[int, Message] = {}
        self._programs: dict[tuple[int, str], ProgramRecord] = {}

    def last_heard(self, process: int) -> Place:
        return self.heard.get(process) or Place()

    def ended_among(self, processes: Iterable[int]) -> dict[int, State]:
        """How those of some processes ended that did: one request, as most run."""
        # What a launcher has seen end has published before, if at all.
        gone = {process: self._job.gone(process) for process in processes}
        told = self._job.states.all() if gone else {}
        found: dict[int, State] = {}
        for process, status in gone.items():
            if process in told:
                found[process] = {**told[process], "counts": told[process].get("counts") or {}}
            elif status is not None:  # its launcher alone has seen it
                heard = self.last_heard(process)
                made = {group.key: min(group.count, heard.get("index") or 0) for group in self._own.ledger.groups()}
                found[process] = {**State(detail=unsaid(status), counts=made), **heard, "state": "died"}
        return found

    def ended_report(self, process: int, state: State) -> ProcessReport:
        return ended(state, ended_word(state), self._last_call(process) if state.get("line") is None else None)

    def _last_call(self, process: int) -> Place:
        """The last call of a process that ended without a word: what it announced, or has recorded."""
        path = self._job.recording_of(process)
        rows = read(path) if path is not None and not self.heard.get(process) else []
        return rows[-1].place() if rows else self.last_heard(process)

    def position(self, process: int, group: Group, entry: Entry) -> ProcessReport:
        """Where another process is, as asked through the store: at the same call, or late with its stack."""
        message = self._job.hear(group.key, entry.index, process, 20)
        if message is not None:
            return reported(message, "waiting")
        where = self.whereabouts([process]).get(process)
        if where is None:
            return reported(self.last_heard(process), "unknown")
        seen: Place = where
        one = reported({**self.last_heard(process), **seen}, "late")
        one.index = where.get("counts", {}).get(group.key, 0)
        one.stack = where.get("stack")
        return one

    def quiet_calls(self, group: Group) -> dict[int, list[QuietRecord]]:
        """The last calls without a collective of all processes of a group that have published them."""
        own = self._own.quiet.told([group], recent=True).get(group.key, [])
        found = {number: told[group.key] for number, told in self._job.quiet.all().items() if group.key in told}
        return {**found, self._job.me: own}

    def ask(self, processes: Iterable[int], question: Question) -> dict[int, Answer]:
        """Ask several processes a question; returns the answers that came in time, unless a process is stopped."""
        job, behind = self._job, self._job.options.mode == "background"
        with self._asking:
            self._number += 1
            waiting = set(processes)
            for process in sorted(waiting):
                job.questions.say({**question, "number": self._number}, process)
                if behind:
                    job.wake(process)
            answers: dict[int, Answer] = {}
            limit, pause = time.monotonic() + ANSWERS_WITHIN, 0.01
            while waiting and time.monotonic() < limit:
                for process in sorted(waiting):
                    answer = job.answers.get(job.me, process)
                    if answer is not None and answer.get("number") == self._number:
                        answers[process] = answer
                        waiting.discard(process)
                self.meanwhile()
                if waiting:
                    time.sleep(pause)
                    pause = min(0.1, pause * 1.5)
        return answers

    def answer(self, *, calls: bool) -> None:
        """Answer the questions of others; about this one's ``calls`` if the checks are on, as it has seen all then."""
        for asker, question in self._job.asked().items():
            answer: Answer = {**(self._own.told(question) if calls else {}), "number": question.get("number", 0)}
            if question.get("stack"):
                answer["where"] = self._own.where()
            self._job.answers.say(answer, asker)

    def whereabouts(self, processes: Iterable[int]) -> dict[int, State]:
        """Where processes are now: their watcher threads answer, unless a process is stopped."""
        asked = list(processes)
        others = [process for process in asked if process != self._job.me]
        answers = self.ask(others, {"stack": True}) if others else {}
        found = {process: answer.get("where") or State() for process, answer in answers.items()}
        return {**found, self._job.me: self._own.where()} if self._job.me in asked else found

    def histories(self, processes: Iterable[int], many: int) -> dict[int, History]:
        """The last calls of these processes, as far as they are available."""
        found: dict[int, History] = {}
        living = []
        for process in processes:
            path = self._job.recording_of(process)
            if process == self._job.me:
                found[process] = self._read(self._own.history(many))
            elif path is not None:  # it died before it could publish
                ended = self.ended_among([process]).get(process) or State(state="died")
                found[process] = read_history(read(path), ended)
            else:
                living.append(process)
        for process, answer in self.ask(living, {"history": many}).items():
            told = answer.get("history")
            if told is not None:
                found[process] = self._read(told, process)
        return found

    def _read(self, told: HistoryRecord, process: int | None = None) -> History:
        table, groups = told["table"], told["groups"]
        places = unpack(told["calls"], MAX_CALLS * 2)
        calls = [table[place] for place in array("H", places[: len(places) // 2 * 2]) if place < len(table)]
        given = {(group, index): digest for group, index, digest in told["given"]}
        rows = rows_of(calls, told["members"], groups, given=given)
        history = read_history(rows, told["end"])
        history.counts.update({key: count for key, (count, _) in groups.items()})
        history.members.update({key: tuple(members) for key, members in told["members"].items()})
        history.quiet = told["quiet"]
        for one in table:
            if process is not None and "defined_at" in one:
                brief: ProgramRecord = {"function": one["function"], "defined_at": one["defined_at"]}
                self._programs.setdefault((process, one["digest"]), brief)
        return history

    def _told(self, process: int, question: Question) -> Answer:
        """What a process answers, this one included; nothing if it has ended."""
        if process == self._job.me:
            return self._own.told(question)
        return {} if self._job.gone(process) is not None else self.ask([process], question).get(process, {})

    def texts(self, process: int, digest: str) -> Mapping[str, str]:
        """Asked for a call that differs."""
        return self._told(process, {"texts": digest}).get("texts", {})

    def given(self, process: int, group: str, index: int) -> Mapping[str, GivenRecord]:
        """Asked for a call that was given other values."""
        return self._told(process, {"given": (group, index)}).get("given", {})

    def program(self, process: int, digest: str) -> ProgramRecord:
        """Known by equal digests, which have equal decisive fields; otherwise read or asked for."""
        own = self._own.explained(digest)
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
            found = self._told(process, {"program": digest}).get("program", {})
        self._programs[key] = {**known, **found}
        return self._programs[key]


class Life:
    """Whether the checks of those that this process waits for still answer: they may have gone on, or ended, unseen."""

    def __init__(self, job: Job, checks: Checks, others: OtherProcesses) -> None:
        self._job, self._checks, self._others = job, checks, others
        self._every = max(ASK_EVERY, job.count / ASKED)
        self._heard = time.monotonic()
        self._due = self._heard + self._every

    def look(self, processes: Sequence[int]) -> None:
        """Ask one of the processes from time to time; steps aside after a long silence."""
        if time.monotonic() < self._due or not processes or self._job.options.rehearsal:
            return
        if self._others.ask(processes[:1], {}):
            self._heard = time.monotonic()
        self._due = time.monotonic() + self._every
        silence = time.monotonic() - self._heard
        if silence > SILENT / ASK_EVERY * self._every:
            self._checks.stand_down(
                f"the runtime checks are off from now on: those of process {processes[0]} have not answered for "
                f"{silence:.0f} s. It has died, is stopped, or its checks have failed."
            )
