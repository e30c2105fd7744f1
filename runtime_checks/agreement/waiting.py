"""Waiting for other processes, while checking for a verdict, a process that ended, or a cycle of waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar

from spmdlint.runtime_checks.agreement.checks import StoodDownError, WaitedEnoughError
from spmdlint.runtime_checks.agreement.judging import Missing, cycle_report
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.verdict import deadlocked, known_side
from spmdlint.runtime_checks.calls.frames import stack_lines, user_frame
from spmdlint.runtime_checks.calls.ledger import Entry, Group
from spmdlint.runtime_checks.records import Details, State, WaitRecord
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, reported
from spmdlint.runtime_checks.reporting.sentences import (
    OVER,
    call_words,
    count_of,
    name_processes,
    through_helper,
)

T = TypeVar("T")
ASK_EVERY = 4.0  # seconds between two questions to an awaited process; in a large job, as long as
ASKED = 64  # of all processes together take in a second
SILENT = 15.0  # seconds without an answer after which it counts as one without checks
SHOWN = 3  # late processes that are described at a time
LOOK_EVERY = 0.2  # seconds between two looks at how the others are; in a large job, as long as
LOOKS_A_SECOND = 256  # of all processes together take
CIRCLE_SELDOM = 30.0
CIRCLE_AFTER = 0.5  # seconds of waiting before looking for a cycle of waits


class Life:
    """Whether the checks of those that this process waits for still answer: they may have gone on, or ended, unseen."""

    def __init__(self, parts: Parts) -> None:
        self._job, self._checks, self._others = parts.job, parts.checks, parts.others
        self._every = max(ASK_EVERY, parts.job.count / ASKED)
        self._heard = time.monotonic()
        self._due = self._heard + self._every

    def look(self, processes: Sequence[int]) -> None:
        """Ask one of the processes from time to time; steps aside after a long silence."""
        if time.monotonic() < self._due or not processes or self._job.options.rehearsal:
            return
        if self._others.lives(processes[0]):
            self._heard = time.monotonic()
        self._due = time.monotonic() + self._every
        silence = time.monotonic() - self._heard
        if silence > SILENT / ASK_EVERY * self._every:
            self._checks.stand_down(
                f"the runtime checks are off from now on: those of process {processes[0]} have not answered for "
                f"{silence:.0f} s. It has died, is stopped, or its checks have failed."
            )


class Waiting:
    """One process's wait at one position of one group, bounded by ``within`` seconds if given.

    ``explain`` returns everything that explains the call that waits.
    """

    def __init__(
        self,
        parts: Parts,
        group: Group,
        entry: Entry,
        explain: Callable[[], Details],
        within: float | None = None,
    ) -> None:
        self._explain = explain
        self._within = within
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._checks, self._ending = parts.checks, parts.ending
        self._group = group
        self._entry = entry
        self._began = time.monotonic()
        self._told_wait = False
        self._warn_after = parts.job.options.late_after
        self._life = Life(parts)
        self._look_after = self._circle_at = 0.0

    def until(self, read: Callable[[], T | None], awaited: Iterable[int]) -> T:
        """Read until there is a message, with checks in between. May raise, or end the process, on a verdict."""
        absent = sorted(awaited)
        while True:
            value = read()
            if value is not None:
                return value
            self._look_around(absent)

    def _look_around(self, absent: list[int]) -> None:
        now = time.monotonic()
        if now < self._look_after:
            return
        self._look_after = now + max(LOOK_EVERY, self._job.count / LOOKS_A_SECOND)
        self._ending.heed()
        if self._job.interrupted():
            return
        gone = self._others.ended_among(absent)
        short = {p: state for p, state in gone.items() if state["counts"].get(self._group.key, 0) < self._entry.index}
        aside = [process for process, state in gone.items() if state["state"] == "aside"]
        over = [process for process, state in short.items() if state["state"] in OVER]
        if not aside and len(over) < len(short):
            self._ending.settle(self._missing(short))
        if aside or over:
            self._step_aside(aside or over)
        waited = time.monotonic() - self._began
        if self._within is not None and waited > self._within:
            raise WaitedEnoughError
        if waited > CIRCLE_AFTER and now >= self._circle_at:
            self._look_for_circle()
            self._circle_at = now + min(CIRCLE_SELDOM, waited)  # each look reads where all others wait
        self._life.look(absent)
        if not self._checks.active:
            raise StoodDownError
        if waited > self._warn_after:
            self._warn_after *= 2
            self._tell_late(absent, waited)

    def _step_aside(self, over: Iterable[int]) -> NoReturn:
        """Go on without checks, as others do for which this process would wait in vain."""
        told = self._job.exchange.aside.get("job")
        if told is not None and told.get("by_program"):
            self._checks.step_aside(str(told.get("reason")))
        else:
            words = f"{name_processes(over)} continues without checks, and so does process {self._job.me}."
            self._checks.stand_down(words)
        raise StoodDownError

    def _own_report(self) -> ProcessReport:
        """The report on this process, with the way through the program to its call."""
        own = self._own.report(self._entry, "waiting")
        way = stack_lines(user_frame(sys._getframe()))
        own.stack = way if len(way) > 1 else None
        return own

    def _missing(self, short: dict[int, State]) -> Report:
        entry, me = self._entry, self._job.me
        processes = {process: self._others.ended_report(process, state) for process, state in short.items()}
        for process in self._group.processes:
            if process not in processes:
                processes[process] = self._others.position(process, self._group, entry)
        processes[me] = self._own_report()
        first = min(short)
        made = short[first]["counts"].get(self._group.key, 0)
        place = entry.placed()
        where = call_words(place, through_helper(place))
        call = Missing(
            entry.index,
            made,
            self._group.processes,
            f"process {me} waits in call {entry.index}, {where}",
            processes,
            {me: known_side(entry.program.decisive(), self._explain())},
            self._others.quiet_calls(self._group),
            threads={me: sorted(self._own.racing)} if self._own.racing else {},
        )
        return call.report(short)

    def _look_for_circle(self) -> None:
        group, entry, me = self._group, self._entry, self._job.me
        single = len({thread for one in self._own.ledger.groups() for thread in tuple(one.threads)}) == 1
        about: WaitRecord = {"group": group.key, "processes": list(group.processes), "single": single}
        mine: WaitRecord = {**about, "counts": self._own.ledger.counts(), **entry.placed()}
        if not self._told_wait:
            self._job.exchange.waits.say(mine)
            self._told_wait = True
        if not single:
            return
        waits = {**self._job.exchange.waits.all(), me: mine}
        circle = deadlocked(me, waits)
        if circle:
            ends = {process: reported(waits[process], "waiting") for process in circle} | {me: self._own_report()}
            members = {process: waits[process]["processes"] for process in circle}
            self._ending.settle(cycle_report(ends, members, entry.index))

    def _tell_late(self, absent: list[int], waited: float) -> None:
        """Report which process is late, and where it is. Late is not a verdict: restores of half an hour are real."""
        entry, exchange, me = self._entry, self._job.exchange, self._job.me
        still = [process for process in absent if not exchange.arrived(self._group.key, entry.index, process)]
        if len(still) > SHOWN:
            write_error(f"spmdlint: late: {name_processes(still)}, of which the first {SHOWN} are:\n")
        wheres = self._others.whereabouts(still[:SHOWN])
        for process in still[:SHOWN]:
            told = "it does not answer: it has died, is stopped, or holds the GIL"
            if process in wheres:
                where = wheres[process]
                made = where.get("counts", {}).get(self._group.key, 0)
                told = f"it is at {where.get('place') or 'an unknown line'}, after {count_of(made)}"
                told += f", compiling {words}" if (words := where.get("compiling")) else ""
                told += "".join(f"\n    {line}" for line in (where.get("stack") or [])[-6:])
            write_error(
                f"spmdlint: late: process {process}, for which process {me} has waited {waited:.0f} s at call "
                f"{entry.index} ({entry.program.function}, {entry.site}): {told}\n"
            )
