"""The calls of a process so far, as it publishes them in background mode, and the verdict over all processes.

Pure: histories come from the key-value store while the job runs, and from the recordings of processes that died.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from spmdlint.runtime_checks.agreement.judging import Differing, Evidence, Missing, cycle_report, source_difference
from spmdlint.runtime_checks.agreement.verdict import compare
from spmdlint.runtime_checks.calls.given import SOURCE, USUAL, told_with
from spmdlint.runtime_checks.recording.reading import Row
from spmdlint.runtime_checks.records import GivenRecord, Place, ProgramRecord, QuietRecord, Side, State
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, ended, reported
from spmdlint.runtime_checks.reporting.sentences import call_words, ended_word, name_processes, through_helper

ENDED = ("finished", "raised", "died")


@dataclass(slots=True)
class History:
    """One process: how it ended, if it has, and per group its members, its count and its last calls by index.

    ``quiet`` are its calls without a collective.
    """

    counts: dict[str, int] = field(default_factory=dict)
    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    end: State = field(default_factory=lambda: State())
    last: Row | None = None
    quiet: Mapping[str, Sequence[QuietRecord]] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return self.end.get("state") or "running"

    def is_threaded(self, group: str) -> bool:
        """Whether other threads than the main one make calls of a group."""
        return any(row.aside for row in self.rows.get(group, {}).values())


def read_history(rows: Iterable[Row], end: State) -> History:
    """The history of a process from its calls; later calls of a group have higher numbers."""
    history = History(end=end)
    for row in rows:
        history.members[row.group] = row.members
        history.rows.setdefault(row.group, {})[row.index] = row
        history.counts[row.group] = row.index
        history.last = row
    return history


def judge(histories: Mapping[int, History], evidence: Evidence) -> Report | None:
    """A proven divergence between the known histories, or None. A difference comes before a missing process."""
    return _difference(histories, evidence) or _crossing(histories) or _missing(histories, evidence)


def groups_of(histories: Mapping[int, History]) -> Iterator[tuple[str, tuple[int, ...], dict[int, History]]]:
    """Each set of processes, by its name, with those of its members that are known."""
    members = {key: group for history in histories.values() for key, group in history.members.items()}
    for key, group in sorted(members.items()):
        yield key, group, {process: histories[process] for process in group if process in histories}


def _difference(histories: Mapping[int, History], evidence: Evidence) -> Report | None:
    for key, group, inside, rows in _sequences(histories, evidence):
        for first in _different(rows):
            there = {process: one[first] for process, one in rows.items() if first in one}
            records = {process: _record(evidence, process, row) for process, row in there.items()}
            if len({row.digest for row in there.values()}) == 1:
                for process, row in there.items():
                    told = evidence.given(process, key, row.index) if row.given else {}
                    _add_given(process, records[process], told)
            found = compare(records) or source_difference(records, len(records) == len(group))
            if found is None:
                continue  # an unknown field on one side agrees with anything
            one = next(iter(there))
            before = [n for n, row in rows[one].items() if n < first and row.digest == there[one].digest]
            call = Differing(
                first,
                group,
                records,
                places={process: row.place() for process, row in there.items()},
                quiet=_quiet(inside, key),
                evidence=evidence,
                agreed=max(before, default=None),
                racing=_are_racing(rows, there),
            )
            return call.report(found)
    return None


def _are_racing(rows: Mapping[int, Mapping[int, Row]], there: Mapping[int, Row]) -> bool:
    """Whether the main thread of a process and another one make these calls, or those that differ."""
    calls = [*(one.values() for one in rows.values()), there.values()]
    return any(len({row.aside for row in one}) > 1 for one in calls)


def _sequences(
    histories: Mapping[int, History], evidence: Evidence
) -> Iterator[tuple[str, tuple[int, ...], dict[int, History], Mapping[int, Mapping[int, Row]]]]:
    """The calls of each group by process and number; of several threads, as each device sees them."""
    for key, group, inside in groups_of(histories):
        rows = {process: history.rows.get(key, {}) for process, history in inside.items()}
        threaded = any(history.is_threaded(key) for history in inside.values())
        for seen in by_device(rows, lambda n, row: evidence.program(n, row.digest)) if threaded else [rows]:
            yield key, group, inside, seen


def _quiet(inside: Mapping[int, History], key: str) -> dict[int, Sequence[QuietRecord]]:
    return {process: history.quiet.get(key, ()) for process, history in inside.items()}


def _record(evidence: Evidence, process: int, row: Row) -> Side:
    """The record of a call; for a process that can no longer answer, the function's name."""
    found = evidence.program(process, row.digest) or ProgramRecord(function=row.function)
    place: Place = {"filename": row.filename, "line": row.line, "callers": list(row.callers)}
    return {**Side(digest=row.digest), **found, **place}


def _add_given(process: int, record: Side, told: Mapping[str, GivenRecord]) -> None:
    """Add what a call is given to its record, and whether it is the source of a broadcast."""
    record["given"] = {key: str(one.get("tag")) for key, one in told.items() if key != SOURCE}
    if SOURCE in told:
        record["source"] = (told[SOURCE].get("tag") == USUAL) is (process == 0)
    record["arguments"] = told_with(record.get("arguments") or [], told)


def _different(rows: Mapping[int, Mapping[int, Row]]) -> Iterator[int]:
    """The known positions at which processes made different calls, or gave one other values, up to a limit."""
    calls: dict[int, tuple[str, int]] = {}
    found: set[int] = set()
    for process in sorted(rows):
        for index, row in rows[process].items():
            call = (row.digest, row.given)
            if calls.setdefault(index, call) != call:
                found.add(index)
    seen: set[frozenset[str]] = set()
    for index in sorted(found):
        pair = frozenset(one[index].digest for one in rows.values() if index in one)
        if pair not in seen:
            seen.add(pair)
            yield index


def _crossing(histories: Mapping[int, History]) -> Report | None:
    """Two processes that share two groups made their last calls of these groups in a different order."""
    ends = {process: history.last for process, history in sorted(histories.items()) if history.last is not None}
    for one, row in ends.items():
        for other, its in ends.items():
            first, second = row.group, its.group
            if one >= other or first == second:
                continue
            mine, theirs = histories[one], histories[other]
            shared = other in mine.members.get(first, ()) and one in theirs.members.get(second, ())
            if shared and row.others.get(second, 0) < its.index and its.others.get(first, 0) < row.index:
                last = {one: row, other: its}
                reports = {process: reported(end.place(), "waiting") for process, end in last.items()}
                return cycle_report(reports, {process: end.members for process, end in last.items()}, row.index)
    return None


def _missing(histories: Mapping[int, History], evidence: Evidence) -> Report | None:
    for key, group, inside in groups_of(histories):
        counts = {process: history.counts.get(key, 0) for process, history in inside.items()}
        short = {p: h for p, h in inside.items() if h.state in ENDED and counts[p] < max(counts.values())}
        if not short:
            continue
        first = min(short, key=lambda process: counts[process])
        made = counts[first]
        rows = {p: row for p, h in inside.items() if (row := h.rows.get(key, {}).get(made + 1)) is not None}
        processes = {process: ended_report(history, key) for process, history in inside.items()}
        for process, row in rows.items():
            processes[process] = reported(row.place(), "calling")
        ahead = [process for process in inside if counts[process] > made]
        call_of = next((rows[process].place() for process in ahead if process in rows), None)
        where = f", {call_words(call_of, through_helper(call_of))}" if call_of is not None else ""
        others = f"{name_processes(ahead)} came to call {made + 1}{where}"
        calls = {process: _record(evidence, process, row) for process, row in rows.items()}
        call = Missing(
            made + 1, made, group, others, processes, calls, _quiet(inside, key), threads=_racing(inside, key)
        )
        return call.report({first: short[first].end})
    return None


def _racing(inside: Mapping[int, History], key: str) -> dict[int, Sequence[str]]:
    """The threads of each process in which several make calls of a group, by name if that is known."""
    found: dict[int, Sequence[str]] = {}
    for process, history in inside.items():
        named = history.end.get("threads")
        if named or _are_racing({process: history.rows.get(key, {})}, {}):
            found[process] = named or ("the main thread", "another one")
    return found


def ended_report(history: History, group: str) -> ProcessReport:
    """A process without a call at a position: how it ended, otherwise its last call."""
    rows = history.rows.get(group, {})
    last = rows[max(rows)].place() if rows and history.end.get("line") is None else None
    one = ended(history.end, ended_word({**history.end, "state": history.state}), last)
    one.index, one.stack = history.counts.get(group, 0), None
    return one


T = TypeVar("T")
Rows = Mapping[int, Mapping[int, T]]


def by_device(rows: Rows[T], record: Callable[[int, T], ProgramRecord]) -> list[Rows[T]]:
    """The calls of processes on each device, numbered anew; devices that see the same programs count once.

    A call without devices, such as a barrier, is one on all. If all calls share devices, they stay as they are. Nothing
    is returned if the devices of a program, or calls on different devices from the first on, are not known any more:
    then no position can be compared.
    """
    sets: dict[tuple[int, int], frozenset[int] | None] = {}
    for process, calls in rows.items():
        for index, call in calls.items():
            known = record(process, call)
            if "devices" not in known:
                return []
            sets[process, index] = frozenset(known["devices"]) if known["devices"] else None
    distinct = {one for one in sets.values() if one is not None}
    if not any(one.isdisjoint(other) for one, other in itertools.combinations(distinct, 2)):
        return [rows]
    if any(calls and min(calls) > 1 for calls in rows.values()):
        return []
    classes = {frozenset(one for one in distinct if device in one) for one in distinct for device in one}
    return [
        {
            process: dict(enumerate((calls[n] for n in sorted(calls) if sets[process, n] in {None, *seen}), 1))
            for process, calls in rows.items()
        }
        for seen in sorted(classes, key=lambda seen: sorted(map(sorted, seen)))
    ]
