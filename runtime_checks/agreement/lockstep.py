"""Lockstep: no call is dispatched before all processes of its group are known to make the same one."""

from __future__ import annotations

import time
from collections.abc import Mapping

from spmdlint.runtime_checks.agreement.apart import tell_apart
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.agreement.standins import explained
from spmdlint.runtime_checks.agreement.verdict import Difference, compare, known_side
from spmdlint.runtime_checks.agreement.waiting import Waiting
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.given import conflict
from spmdlint.runtime_checks.calls.ledger import Entry, Group, thread_names
from spmdlint.runtime_checks.calls.modules import module_difference, pack_texts
from spmdlint.runtime_checks.calls.provenance import conflicts
from spmdlint.runtime_checks.records import Details, Message, Place, ProgramRecord, Side
from spmdlint.runtime_checks.reporting.report import ADVICE_ON, ProcessReport, Report, diverged, reported
from spmdlint.runtime_checks.reporting.sentences import differs, last_agreed, name_processes, racing_threads
from spmdlint.runtime_checks.transport.store import MAX_WAIT_MS

DETAILS_WITHIN = 4.0  # seconds for the others to explain their side after a difference is proven


class Lockstep:
    """The agreement on one call after another; :meth:`agree` returns only if all agree."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._verdicts, self._setup = parts.verdicts, parts.setup
        self._agreed: dict[str, int] = {}  # the last call of a program that was given the same values on all processes

    def agree(self, group: Group, entry: Entry, call: Call, within: float | None = None) -> None:
        """Compare with all others of the group; raises or ends the process if they differ."""
        exchange = self._job.exchange
        digest = call.program.digest
        waiting = Waiting(self._parts, group, entry, lambda: self._details(entry, call), within)
        exchange.publish_program(digest, call.program.decisive())
        message: Message = {**Message(digest=digest, tags=call.tags), **entry.brief()}
        if call.source is not None:
            message["source"] = call.source
        if call.given:
            message["given"] = dict(call.given)
        exchange.say(group.key, entry.index, message)
        self._hear_all(group, entry, call, waiting)
        exchange.forget(group.key, entry.index)
        if call.given:
            self._agreed[digest] = entry.index

    def _hear_all(self, group: Group, entry: Entry, call: Call, waiting: Waiting) -> None:
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
                    self._diverge(group, entry, call, messages)
        sources = sum(bool(message.get("source")) for message in messages.values()) + bool(call.source)
        differ = any(
            conflicts(call.tags, str(message.get("tags", ""))) or conflict(call.given, message.get("given") or {})
            for message in messages.values()
        )
        if differ or (call.source is not None and sources != 1):
            self._diverge(group, entry, call, messages)

    def _compare_setup(self, process: int) -> None:
        """Compare the setup: a process that has announced a call has published its setup before."""
        report = self._setup.compare_with(process)
        if report is not None:
            self._verdicts.settle(report)

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

    def _diverge(self, group: Group, entry: Entry, call: Call, messages: dict[int, Message]) -> None:
        """A difference is proven: explain this side, gather the explanations of the others, and declare the verdict."""
        me, exchange = self._job.me, self._job.exchange
        mine = self._details(entry, call)
        self._own.publish_quiet(exchange)
        exchange.details.say(mine, group.key, entry.index)
        details: dict[int, Details] = {me: mine}
        limit = time.monotonic() + DETAILS_WITHIN
        waits = [process for process in group.processes if process != me]
        while waits and time.monotonic() < limit:
            self._verdicts.heed()
            for process in list(waits):
                message = messages.get(process) or exchange.hear(group.key, entry.index, process, 50)
                told = exchange.details.wait(group.key, entry.index, process) if message else None
                if message is not None:
                    messages[process] = message
                if told is not None:
                    details[process] = told
                    waits.remove(process)
            if waits and all(process not in messages for process in waits):
                break  # the difference is proven without the processes that have not reached this call
        self._verdicts.settle(self._report(group, entry, call, messages, details))

    def _records(self, call: Call, messages: Mapping[int, Message], details: Mapping[int, Details]) -> dict[int, Side]:
        """All that is known of the processes that have announced a call here."""
        me = self._job.me
        # The program's record decides; the details of a call only explain.
        records = {me: known_side(call.program.decisive(), details[me])}
        for process, message in messages.items():
            records[process] = known_side(self._record(message), details.get(process, Details()), message)
        return records

    def _report(
        self,
        group: Group,
        entry: Entry,
        call: Call,
        messages: Mapping[int, Message],
        details: Mapping[int, Details],
    ) -> Report:
        me = self._job.me
        records = self._records(call, messages, details)
        difference = compare(records) or self._source_difference(call, messages)
        difference = difference or self._origin_difference(call, messages, details)
        processes: dict[int, ProcessReport] = {}
        for process in group.processes:
            if process in records:
                told = details.get(process, Details())
                one = reported(told or messages.get(process) or Place(), "calling")
                one.arguments = told.get("arguments")
                one.static = told.get("static") or None
                one.recent = told.get("recent") or []
            else:
                one = self._others.position(process, group, entry)
            processes[process] = one
        if difference.field == "source":
            for process in records:
                passed = call.source if process == me else bool(messages[process].get("source"))
                processes[process].detail = f"is_source={passed}"
        tell_apart(processes, records, difference.field)
        words = differs(entry.index, group.processes, difference.words, records)
        report = diverged(difference.kind, words, entry.index, processes, difference.field)
        if difference.field == "given":
            report.notes += last_agreed(entry.program.function, self._agreed.get(entry.program.digest))
        if difference.kind != "sequence":  # the programs of two functions differ anyway
            report.module = module_difference({number: side.get("texts") or {} for number, side in details.items()})
        racing = {number: side["threads"] for number, side in details.items() if len(side.get("threads") or ()) > 1}
        if racing:
            report.advice = ADVICE_ON["threads"]
            others = {number: names for number, names in racing.items() if number != me}
            report.notes += [racing_threads(others)] if others else []  # this process's own remark is among its notes
        return explained(report, group.processes, records, self._others.quiet_calls(group))

    def _source_difference(self, call: Call, messages: Mapping[int, Message]) -> Difference | None:
        """A broadcast with several sources, or with none."""
        sources = [number for number, message in messages.items() if message.get("source")]
        sources += [self._job.me] if call.source else []
        if call.source is None or len(sources) == 1:
            return None
        told = f"{name_processes(sources)} pass is_source=True, and all get the sum of their values"
        words = told if sources else "no process passes is_source=True, and all get zeros"
        return Difference("arguments", "source", f" in its sources: {words}")

    def _origin_difference(
        self, call: Call, messages: Mapping[int, Message], details: Mapping[int, Details]
    ) -> Difference:
        me = self._job.me
        for process, message in sorted(messages.items()):
            theirs = str(message.get("tags", ""))
            for back in conflicts(call.tags, theirs):
                sides = {me: (details.get(me) or {}), process: (details.get(process) or {})}
                number_of = f"argument {len(call.values) - 1 - back}"
                paths: dict[int, str] = {}
                origins: dict[int, str] = {}
                for number, side in sorted(sides.items()):
                    arguments = side.get("arguments") or []
                    argument = arguments[-1 - back] if back < len(arguments) else {}
                    paths[number] = str(argument.get("path") or number_of)
                    origins[number] = str(argument.get("origin") or "a different output")
                one_path = len(set(paths.values())) == 1
                what = f"where {paths[me]} comes from" if one_path else f"what {number_of} is"
                told = (f"process {n}: {'' if one_path else paths[n] + ', '}{origins[n]}" for n in sorted(paths))
                return Difference("arguments", "origin", f" in {what}: {'; '.join(told)}")
        return Difference("program", "module", " in its program")
