"""Lockstep: no call is dispatched before all processes of its group are known to make the same one."""

from __future__ import annotations

import time
from collections.abc import Mapping

from spmdlint.runtime_checks.agreement.judging import Differing, origin_difference, source_difference
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.verdict import Difference, compare, known_side
from spmdlint.runtime_checks.agreement.waiting import Waiting
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.given import conflict
from spmdlint.runtime_checks.calls.ledger import Entry, Group, thread_names
from spmdlint.runtime_checks.calls.modules import pack_texts
from spmdlint.runtime_checks.calls.provenance import conflicts
from spmdlint.runtime_checks.records import Details, Message, ProgramRecord
from spmdlint.runtime_checks.reporting.report import Report
from spmdlint.runtime_checks.reporting.sentences import racing_threads
from spmdlint.runtime_checks.transport.store import MAX_WAIT_MS

DETAILS_WITHIN = 4.0  # seconds for the others to explain their side after a difference is proven
CLOSE_BEHIND = 0.5  # seconds for others to reach the call too: the difference is proven without them


class Lockstep:
    """The agreement on one call after another; :meth:`agree` returns only if all agree."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._ending, self._setup = parts.ending, parts.setup
        self._agreed: dict[str, int] = {}  # the last call of a program that was given the same values on all processes

    def agree(self, group: Group, entry: Entry, call: Call, within: float | None = None) -> None:
        """Compare with all others of the group; raises or ends the process if they differ."""
        exchange = self._job.exchange
        digest = call.program.digest
        waiting = Waiting(self._parts, group, entry, lambda: self._details(entry, call), within)
        exchange.publish_program(digest, call.program.decisive())
        message: Message = {**Message(digest=digest, tags=call.tags), **entry.placed()}
        if call.source is not None:
            message["source"] = call.source
        if call.given:
            message["given"] = dict(call.given)
        exchange.say(group.key, entry.index, message)
        self._hear_all(group, entry, call, waiting, message)
        exchange.forget(group.key, entry.index)
        if call.given:
            self._agreed[digest] = entry.index

    def _hear_all(self, group: Group, entry: Entry, call: Call, waiting: Waiting, own: Message) -> None:
        exchange, me, digest = self._job.exchange, self._job.me, call.program.digest
        messages: dict[int, Message] = {}
        absent = [process for process in group.processes if process != me]
        for process in list(absent):
            message = waiting.until(
                lambda process=process: exchange.hear(group.key, entry.index, process, MAX_WAIT_MS),  # type: ignore[misc]
                absent,
            )
            absent.remove(process)
            self._others.heard[process] = messages[process] = message
            self._compare_setup(process)
            if message.get("digest") != digest:
                records = {me: known_side(call.program.decisive()), process: known_side(self._record(message))}
                if compare(records) is not None:
                    self._diverge(group, entry, call, messages, own)
        sources = sum(bool(message.get("source")) for message in messages.values()) + bool(call.source)
        differ = any(
            conflicts(call.tags, str(message.get("tags", ""))) or conflict(call.given, message.get("given") or {})
            for message in messages.values()
        )
        if differ or (call.source is not None and sources != 1):
            self._diverge(group, entry, call, messages, own)

    def _compare_setup(self, process: int) -> None:
        """Compare the setup: a process that has announced a call has published its setup before."""
        report = self._setup.compare_with(process)
        if report is not None:
            self._ending.settle(report)

    def _record(self, message: Message) -> ProgramRecord:
        return self._job.exchange.program(str(message.get("digest")))

    def _details(self, entry: Entry, call: Call) -> Details:
        """Everything that explains this process's side of a difference."""
        return {
            **Details(),
            **entry.placed(),
            "arguments": call.explained(self._own.provenance, self._own.values),
            "given": dict(call.given),
            "static": dict(call.static),
            "recent": self._own.recent(entry),
            "threads": thread_names(self._own.ledger.group(entry.program.processes)),
            "texts": pack_texts(call.texts()),
        }

    def _diverge(self, group: Group, entry: Entry, call: Call, messages: dict[int, Message], own: Message) -> None:
        """A difference is proven: explain this side, gather the explanations of the others, and declare the verdict."""
        me, exchange = self._job.me, self._job.exchange
        mine = self._details(entry, call)
        self._own.publish_quiet(exchange)
        exchange.details.say(mine, group.key, entry.index)
        details: dict[int, Details] = {me: mine}
        now = time.monotonic()
        limit, reached_by = now + DETAILS_WITHIN, now + CLOSE_BEHIND
        waits = [process for process in group.processes if process != me]
        while waits and time.monotonic() < limit:
            self._ending.heed()
            for process in list(waits):
                message = messages.get(process) or exchange.hear(group.key, entry.index, process, 50)
                told = exchange.details.wait(group.key, entry.index, process) if message else None
                if message is not None:
                    messages[process] = message
                if told is not None:
                    details[process] = told
                    waits.remove(process)
            if time.monotonic() > reached_by and all(process not in messages for process in waits):
                break
        for process in waits:  # one that has come since then is a side as well, if without its explanation
            message = messages.get(process) or exchange.hear(group.key, entry.index, process, 20)
            if message is not None:
                messages[process] = message
        self._ending.settle(self._report(group, entry, {me: own, **messages}, details))

    def _report(
        self, group: Group, entry: Entry, messages: Mapping[int, Message], details: Mapping[int, Details]
    ) -> Report:
        me = self._job.me
        # The program's record decides; the details of a call only explain.
        records = {
            process: known_side(self._record(message), details.get(process, Details()), message)
            for process, message in messages.items()
        }
        found = compare(records) or source_difference(records) or origin_difference(me, records)
        racing = {number: side["threads"] for number, side in details.items() if len(side.get("threads") or ()) > 1}
        call = Differing(
            entry.index,
            group.processes,
            records,
            places={process: details.get(process) or message for process, message in messages.items()},
            recent={process: told.get("recent") or [] for process, told in details.items()},
            quiet=self._others.quiet_calls(group),
            agreed=self._agreed.get(entry.program.digest),
            racing=bool(racing),
            others={
                process: self._others.position(process, group, entry)
                for process in group.processes
                if process not in records
            },
        )
        report = call.report(found or Difference("program", "module", " in its program"))
        others = {number: names for number, names in racing.items() if number != me}
        report.notes += [racing_threads(others)] if others else []  # this process's own remark is among its notes
        return report
