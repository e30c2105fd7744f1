"""From calls that differ, or that some processes have not made, to the report; in both modes, and after a job. Pure.

A call that some processes make may have been run by others as a program without a collective, which is not counted.
Such a call alone proves nothing: one process may run a function on its own copy, where nothing is exchanged, and still
reach the call that the others wait in. It explains a difference that is proven otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spmdlint.runtime_checks.agreement.verdict import Difference, Sides, compare
from spmdlint.runtime_checks.calls.modules import module_difference
from spmdlint.runtime_checks.calls.provenance import conflicts
from spmdlint.runtime_checks.records import GivenRecord, Place, ProgramRecord, QuietRecord, Side, State
from spmdlint.runtime_checks.reporting.report import (
    ADVICE_ON,
    ProcessReport,
    Report,
    blaming_threads,
    diverged,
    reported,
)
from spmdlint.runtime_checks.reporting.sentences import (
    alike,
    call_words,
    callers_of,
    capitalized,
    differs,
    ended_field,
    last_agreed,
    missing,
    name_processes,
    place,
)

NOTHING_TO_EXCHANGE = "as a program without a collective between processes, which is not counted"
RUNNING = ("late", "waiting", "unknown")

Calls = Mapping[int, Side]
Quiet = Mapping[int, Sequence[QuietRecord]]


class Evidence:
    """What is known of calls beside their places; of recordings, the programs only. All but these explains."""

    def __init__(self, programs: Mapping[int, Mapping[str, ProgramRecord]] | None = None) -> None:
        self._known = programs or {}

    def program(self, process: int, digest: str) -> ProgramRecord:
        """The record behind a process's digest, as far as it is available."""
        return self._known.get(process, {}).get(digest, ProgramRecord())

    def texts(self, _process: int, _digest: str) -> Mapping[str, str]:
        """The lowered module of a process's program, packed."""
        return {}

    def given(self, _process: int, _group: str, _index: int) -> Mapping[str, GivenRecord]:
        return {}


@dataclass(frozen=True, slots=True)
class Differing:
    """A call that differs: its number in its group, and all that is known of each process that makes it.

    ``places`` are the calls for readers. ``evidence`` has the lowered modules of programs whose record has none, and
    ``quiet`` has the calls without a collective. ``agreed`` is the last call of the program that was given the same
    values everywhere. ``racing`` is whether several threads make such calls.
    """

    index: int
    group: Sequence[int]
    records: Sides
    places: Mapping[int, Place]
    quiet: Quiet
    evidence: Evidence = field(default_factory=Evidence)
    agreed: int | None = None
    racing: bool = False
    others: Mapping[int, ProcessReport] = field(default_factory=dict)

    def report(self, found: Difference) -> Report:
        """The report; ``others`` are the processes that do not make the call."""
        processes = dict(self.others)
        for number, record in self.records.items():
            processes[number] = _call_reported(self.places[number], record, "calling")
        _tell_apart(processes, found)
        message = differs(self.index, self.group, found.words, self.records)
        report = diverged(found.kind, message, self.index, processes, found.field)
        if found.kind != "sequence":  # the programs of two functions differ anyway
            by_program = {one.get("digest", ""): n for n, one in sorted(self.records.items(), reverse=True)}
            first = {n: digest for digest, n in sorted(by_program.items(), key=lambda item: item[1])[:2]}
            texts = {n: self.records[n].get("texts") or self.evidence.texts(n, digest) for n, digest in first.items()}
            report.module = module_difference(texts)
        if found.field == "given":
            function = next(iter(self.places.values())).get("function")
            report.notes += last_agreed(function or "it", self.agreed)
        if self.racing:
            report.advice = ADVICE_ON["threads"]
        return explained(report, self.group, self.records, self.quiet)


def source_difference(records: Sides, of_all: bool = True) -> Difference | None:
    """A broadcast with several sources, or with none if these are the records ``of_all``."""
    known = {number: source for number, record in records.items() if (source := record.get("source")) is not None}
    sources = [number for number, source in known.items() if source]
    if not known or len(sources) == 1 or not (sources or of_all):
        return None
    told = f"{name_processes(sources)} pass is_source=True, and all get the sum of their values"
    words = told if sources else "no process passes is_source=True, and all get zeros"
    own = {number: f"is_source={record.get('source')}" for number, record in records.items()}
    return Difference("arguments", "source", f" in its sources: {words}", own)


def origin_difference(one: int, records: Sides) -> Difference | None:
    """An argument of known origin that comes from another output than in process ``one``."""
    mine = records[one]
    for number, record in sorted(records.items()):
        for back in conflicts(mine.get("tags", ""), record.get("tags", "")):
            number_of = f"argument {len(mine.get('arguments') or ()) - 1 - back}"
            paths, origins = {}, {}
            for process in sorted((one, number)):
                arguments = records[process].get("arguments") or []
                argument = arguments[-1 - back] if back < len(arguments) else {}
                paths[process] = str(argument.get("path") or number_of)
                origins[process] = str(argument.get("origin") or "a different output")
            same = len(set(paths.values())) == 1
            what = f"where {paths[one]} comes from" if same else f"what {number_of} is"
            if same and len(set(origins.values())) == 1:
                where = f"{origins[one]} on both, but of another program or of other arguments"
                return Difference("arguments", "made", f" in {what}: {where}")
            told = (f"process {n}: {'' if same else paths[n] + ', '}{origins[n]}" for n in paths)
            return Difference("arguments", "origin", f" in {what}: {'; '.join(told)}")
    return None


@dataclass(frozen=True, slots=True)
class Missing:
    """A call that some processes have ended without, after ``made`` calls; ``others`` says who waits for them where.

    ``calls`` are the calls at that place, of the processes that made one, and ``threads`` those that race.
    """

    index: int
    made: int
    group: Sequence[int]
    others: str
    processes: Mapping[int, ProcessReport]
    calls: Mapping[int, Side]
    quiet: Quiet
    threads: Mapping[int, Sequence[str]]

    def report(self, ended: Mapping[int, State]) -> Report:
        """The report; ``ended`` is how those ended that have not made it."""
        first = min(ended)
        message = missing(
            {number: self.processes[number].told() for number in ended}, self.made, self.group, self.others
        )
        report = diverged("missing", message, self.index, self.processes, ended_field(ended[first]))
        blaming_threads(report, self.threads)
        return explained(report, self.group, self.calls, self.quiet)


def cycle_report(ends: Mapping[int, ProcessReport], members: Mapping[int, Sequence[int]], index: int) -> Report:
    """The report on processes each of which waits in a call over these members for another one of them."""
    told = "; ".join(
        f"process {number} waits in call {end.index} of {name_processes(members[number])} "
        f"({end.function}, {end.filename}:{end.line})"
        for number, end in sorted(ends.items())
    )
    return diverged("sequence", f"the processes wait for each other in a cycle: {told}.", index, ends)


def _call_reported(place: Place, record: Side, state: str) -> ProcessReport:
    """A process of a report that makes a call."""
    one = reported(place, state)
    one.arguments, one.static = record.get("arguments"), record.get("static") or None
    return one


def _tell_apart(processes: Mapping[int, ProcessReport], found: Difference) -> None:
    """Add what differs to the processes of a report that make a call, unless their arguments already show it."""
    seen: dict[str, set[str]] = {}
    for number, told in found.told.items():
        one = processes[number]
        seen.setdefault(repr((one.arguments, one.static)), set()).add(told)
    if found.field in ("function", "source") or any(len(told) > 1 for told in seen.values()):
        for number, told in found.told.items():
            processes[number].detail = told


def explained(report: Report, group: Sequence[int], calls: Calls, quiet: Quiet) -> Report:
    """The report of a proven difference, retold where a process ran the call without a collective.

    ``calls`` are the calls at the report's index, of the processes that made one; ``quiet`` the calls without a
    collective of all whose are known. Records have the decisive fields, place, ``arguments`` and ``static``.
    """
    index = report.index
    if index is None or report.kind not in ("sequence", "missing") or not any(quiet.values()):
        return report
    functions = {number: (call.get("function"), call.get("defined_at")) for number, call in calls.items()}
    for makers in alike(functions).values():
        call = calls[makers[0]]
        found = {
            process: stands
            for process, theirs in sorted(quiet.items())
            if process not in makers and (stands := _stand_in(call, quiet.get(makers[0], ()), theirs, index))
        }
        records: dict[int, Side] = {**{number: calls[number] for number in makers}, **found}
        difference = compare(records) if found else None
        if difference is not None:
            words = difference.words
            named = f"{name_processes(found)} ran it {NOTHING_TO_EXCHANGE}"
            processes = {int(number): one for number, one in report.processes.items()}
            for number, record in records.items():
                processes[number] = _placed(record, index, processes.get(number), number in found)
            told = differs(index, group, words, records) + f" {capitalized(named)}."
            retold = diverged(difference.kind, told, index, processes, "placement")
            retold.notes = report.notes
            return retold
    return report


def _stand_in(
    call: Place, mine: Sequence[QuietRecord], theirs: Sequence[QuietRecord], index: int
) -> QuietRecord | None:
    """The last call of another process that was made instead of this one: of its function, line and point.

    One that the waiting process has made in the same way is none.
    """
    here = (
        one
        for one in reversed(theirs)
        if one.get("after") == index - 1 and _at_one_place(call, one) and _one_function(call, one)
    )
    return next((one for one in here if not any(_made_too(own, one) for own in mine)), None)


def _made_too(own: QuietRecord, one: QuietRecord) -> bool:
    if own.get("digest") != one.get("digest") or not _at_one_place(own, one):
        return False
    seen_once = not own.get("times") or not one.get("times")
    return seen_once or (own.get("after") == one.get("after") and own.get("times", 0) >= one.get("times", 0))


def _at_one_place(first: Place, second: Place) -> bool:
    through = [callers_of(first), callers_of(second)]
    return bool(place(first)) and place(first) == place(second) and (None in through or through[0] == through[1])


def _one_function(first: Place, second: Place) -> bool:
    defined = {first.get("defined_at"), second.get("defined_at")} - {None}
    return first.get("function") == second.get("function") and len(defined) < 2


def _placed(record: Side, index: int, before: ProcessReport | None, stands_in: bool) -> ProcessReport:
    one = _call_reported(record, record, before.state if before is not None and not stands_in else "calling")
    one.index = index
    if stands_in:
        one.detail = f"{NOTHING_TO_EXCHANGE}{_then(before)}"
    elif before is not None:
        one.stack = before.stack
    return one


def _then(before: ProcessReport | None) -> str:
    """What a process did after a call that is not counted."""
    if before is None:
        return ""
    at = before.told()
    if before.state == "calling":
        return f"; then it calls {call_words(at)}"
    if before.state == "raised":
        where = f" at {place(at)}" if place(at) else ""
        return f"; then it raised an exception{where} ({before.detail})"
    return f"; then it is {before.state}" if before.state in RUNNING else f"; then {before.state}"
