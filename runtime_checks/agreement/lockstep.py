"""Lockstep: no call is dispatched before all processes of its group are known to make the same one.

Who waits for others looks meanwhile for a verdict, a process that ended, and a cycle of waits.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from spmdlint.runtime_checks.agreement.checks import StoodDownError
from spmdlint.runtime_checks.agreement.judging import (
    Differing,
    Missing,
    cycle_report,
    origin_difference,
    source_difference,
)
from spmdlint.runtime_checks.agreement.others import Life
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.verdict import Difference, compare, deadlocked, known_side
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.frames import stack_lines, user_frame
from spmdlint.runtime_checks.calls.given import conflict
from spmdlint.runtime_checks.calls.ledger import Entry, Group
from spmdlint.runtime_checks.calls.provenance import conflicts
from spmdlint.runtime_checks.records import Details, Message, ProgramRecord, State, WaitRecord
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, reported
from spmdlint.runtime_checks.reporting.sentences import (
    OVER,
    call_words,
    count_of,
    name_processes,
    racing_threads,
    through_helper,
)
from spmdlint.runtime_checks.transport.store import MAX_WAIT_MS

DETAILS_WITHIN = 4.0  # seconds for the others to explain their side after a difference is proven
CLOSE_BEHIND = 0.5  # seconds for others to reach the call too: the difference is proven without them
SHOWN = 3  # late processes that are described at a time
LOOK_EVERY = 0.2  # seconds between two looks at how the others are
CIRCLE_SELDOM = 30.0
CIRCLE_AFTER = 0.5  # seconds of waiting before looking for a cycle of waits


class Agreement:
    """One call of this process, and the others of its group on the way to it; ``within`` bounds the wait in seconds.

    ``messages`` are those of the processes that have come to the call, this one first.
    """

    def __init__(self, parts: Parts, group: Group, entry: Entry, call: Call, within: float | None) -> None:
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._checks, self._ending, self._setup = parts.checks, parts.ending, parts.setup
        self._group, self._entry, self._call = group, entry, call
        self._within = within
        self._messages: dict[int, Message] = {}
        self._began = time.monotonic()
        self._warn_after = parts.job.options.late_after
        self._life = Life(parts.job, parts.checks, parts.others)
        self._look_after = self._circle_at = 0.0

    def reach(self) -> None:
        """Announce the call, and hear of all others; returns only if all agree."""
        job, group, entry, call = self._job, self._group, self._entry, self._call
        digest = call.program.digest
        job.publish_program(digest, call.program.decisive())
        message: Message = {**Message(digest=digest, tags=call.tags), **entry.placed()}
        if call.source is not None:
            message["source"] = call.source
        if call.given:
            message["given"] = dict(call.given)
        job.say(group.key, entry.index, message)
        self._messages[job.me] = message
        self._hear_all()
        if call.given:
            self._own.agreed[digest] = entry.index
        job.forget(group.key, entry.index)

    def _hear(self, process: int, milliseconds: int) -> Message | None:
        """The message of a process at this call, or None for now."""
        at = self._group.key, self._entry.index
        told = self._messages.get(process) or self._job.hear(*at, process, milliseconds)
        if told is not None:
            self._messages[process] = told
        return told

    def _hear_all(self) -> None:
        call, me = self._call, self._job.me
        absent = [process for process in self._group.processes if process != me]
        for process in list(absent):
            while (message := self._hear(process, MAX_WAIT_MS)) is None:
                self._look_around(absent)
            absent.remove(process)
            self._others.heard[process] = message
            report = self._setup.compare_with(process)  # who has announced a call has published its setup before
            if report is not None:
                self._ending.settle(report)
            if message.get("digest") != call.program.digest:
                records = {me: known_side(call.program.decisive()), process: known_side(self._record(message))}
                if compare(records) is not None:
                    self._diverge()
        others = [message for process, message in self._messages.items() if process != me]
        sources = sum(bool(message.get("source")) for message in others) + bool(call.source)
        differ = any(
            conflicts(call.tags, str(message.get("tags", ""))) or conflict(call.given, message.get("given") or {})
            for message in others
        )
        if differ or (call.source is not None and sources != 1):
            self._diverge()

    def _record(self, message: Message) -> ProgramRecord:
        return self._job.program(str(message.get("digest")))

    def _look_around(self, absent: list[int]) -> None:
        """While others are awaited: may raise, or end the process, on a verdict."""
        now = time.monotonic()
        if now < self._look_after:
            return
        self._look_after = now + LOOK_EVERY
        self._ending.heed()
        gone = self._others.ended_among(absent)
        short = {p: state for p, state in gone.items() if state["counts"].get(self._group.key, 0) < self._entry.index}
        aside = [process for process, state in gone.items() if state["state"] == "aside"]
        over = [process for process, state in short.items() if state["state"] in OVER]
        if not aside and len(over) < len(short):
            self._ending.settle(self._missing(short))
        if aside or over:  # go on without checks, as others do for which this process would wait in vain
            words = f"{name_processes(aside or over)} continues without checks, and so does process {self._job.me}."
            self._checks.follow_aside(self._job.aside.get("job") or {"reason": words}, tell=True)
            raise StoodDownError
        waited = time.monotonic() - self._began
        if self._within is not None and waited > self._within:
            raise StoodDownError
        if waited > CIRCLE_AFTER and now >= self._circle_at:
            self._look_for_circle()
            self._circle_at = now + min(CIRCLE_SELDOM, waited)  # each look reads where all others wait
        self._life.look(absent)
        if not self._checks.active:
            raise StoodDownError
        if waited > self._warn_after:
            self._warn_after *= 2
            self._tell_late(absent, waited)

    def _own_report(self) -> ProcessReport:
        """The report on this process, with the way through the program to its call."""
        own = reported(self._entry.placed(), "waiting")
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
            {me: known_side(entry.program.decisive(), self._details())},
            self._others.quiet_calls(self._group),
            threads={me: sorted(self._own.racing)} if self._own.racing else {},
        )
        return call.report(short)

    def _look_for_circle(self) -> None:
        group, entry, me = self._group, self._entry, self._job.me
        single = len({thread for one in self._own.ledger.groups() for thread in tuple(one.threads)}) == 1
        about: WaitRecord = {"group": group.key, "processes": list(group.processes), "single": single}
        mine: WaitRecord = {**about, "counts": self._own.ledger.counts(), **entry.placed()}
        self._job.waits.say(mine)
        if not single:
            return
        waits = {**self._job.waits.all(), me: mine}
        circle = deadlocked(me, waits)
        if circle:
            ends = {process: reported(waits[process], "waiting") for process in circle} | {me: self._own_report()}
            members = {process: waits[process]["processes"] for process in circle}
            self._ending.settle(cycle_report(ends, members, entry.index))

    def _tell_late(self, absent: list[int], waited: float) -> None:
        """Report which process is late, and where it is. Late is not a verdict: restores of half an hour are real."""
        entry, me = self._entry, self._job.me
        still = [process for process in absent if self._hear(process, 1) is None]
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

    def _details(self) -> Details:
        """Everything that explains this process's side of a difference."""
        entry, call = self._entry, self._call
        return {
            **Details(),
            **entry.placed(),
            "arguments": call.explained(self._own.provenance, self._own.values),
            "given": dict(call.given),
            "static": dict(call.static),
            "threads": self._own.ledger.group(entry.program.processes).thread_names(),
            "texts": dict(call.texts()),
        }

    def _diverge(self) -> None:
        """A difference is proven: explain this side, gather the explanations of the others, and declare the verdict."""
        me, job, at = self._job.me, self._job, (self._group.key, self._entry.index)
        details = {me: self._details()}
        self._own.publish_quiet(job)
        job.details.say(details[me], *at)
        now = time.monotonic()
        limit, reached_by = now + DETAILS_WITHIN, now + CLOSE_BEHIND
        waits = [process for process in self._group.processes if process != me]
        while waits and time.monotonic() < limit:
            self._ending.heed()
            for process in list(waits):
                told = job.details.wait(*at, process) if self._hear(process, 50) else None
                if told is not None:
                    details[process] = told
                    waits.remove(process)
            if time.monotonic() > reached_by and all(process not in self._messages for process in waits):
                break
        for process in waits:  # one that has come since then is a side as well, if without its explanation
            self._hear(process, 20)
        self._ending.settle(self._report(details))

    def _report(self, details: Mapping[int, Details]) -> Report:
        me, group, entry = self._job.me, self._group, self._entry
        # The program's record decides; the details of a call only explain.
        records = {
            process: known_side(self._record(message), details.get(process, Details()), message)
            for process, message in self._messages.items()
        }
        found = compare(records) or source_difference(records) or origin_difference(me, records)
        racing = {number: side["threads"] for number, side in details.items() if len(side.get("threads") or ()) > 1}
        absent = [process for process in group.processes if process not in records]
        call = Differing(
            entry.index,
            group.processes,
            records,
            places={process: details.get(process) or message for process, message in self._messages.items()},
            quiet=self._others.quiet_calls(group),
            agreed=self._own.agreed.get(self._call.program.digest),
            racing=bool(racing),
            others={process: self._others.position(process, group, entry) for process in absent},
        )
        report = call.report(found or Difference("program", "module", " in its program"))
        others = {number: names for number, names in racing.items() if number != me}
        report.notes += [racing_threads(others)] if others else []  # this process's own remark is among its notes
        return report
