"""The calls of a process so far, as it publishes them in background mode, and the verdict over all processes.

Pure: histories come from the key-value store while the job runs, and from the recordings of processes that died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from spmdlint.runtime_checks.bydevice import by_device
from spmdlint.runtime_checks.records import QuietRecord
from spmdlint.runtime_checks.report import ProcessReport, Report, diverged, reported, tell_definitions
from spmdlint.runtime_checks.sentences import (
    call_words,
    differs,
    ended_word,
    missing,
    name_processes,
    through_helper,
)
from spmdlint.runtime_checks.standins import explained
from spmdlint.runtime_checks.texts import module_difference
from spmdlint.runtime_checks.verdict import compare

ENDED = ("finished", "raised", "died")
Programs = Callable[[int, str], Mapping[str, Any]]
Texts = Callable[[int, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """One call: ``prefix`` is a digest of all calls of the group up to it, ``others`` the counts of other groups.

    ``aside`` is whether another thread than the main one made it.
    """

    index: int
    prefix: str
    digest: str
    function: str | None
    filename: str | None
    line: int | None
    others: Mapping[str, int]
    callers: tuple[str, ...] = ()
    aside: bool = False

    def report(self, state: str) -> ProcessReport:
        """The call, for a report."""
        return reported(self.place(), state)

    def place(self) -> dict[str, Any]:
        """The call and its lines, as reports name them."""
        place = {"function": self.function, "filename": self.filename, "line": self.line}
        return {"index": self.index, **place, "callers": list(self.callers)}


@dataclass(slots=True)
class History:
    """One process: its state, and per group its members, its count and its last calls by index.

    ``quiet`` are its calls without a collective.
    """

    state: str = "running"
    counts: dict[str, int] = field(default_factory=dict)
    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    end: Mapping[str, Any] = field(default_factory=dict)
    last: tuple[str, int] | None = None
    quiet: Mapping[str, Sequence[QuietRecord]] = field(default_factory=dict)

    def is_threaded(self, group: str) -> bool:
        """Whether other threads than the main one make calls of a group."""
        return any(row.aside for row in self.rows.get(group, {}).values())

    def add(self, group: str, members: tuple[int, ...], row: Row) -> None:
        """Add a call; later calls of a group have higher numbers."""
        self.members[group] = members
        self.rows.setdefault(group, {})[row.index] = row
        self.counts[group] = max(self.counts.get(group, 0), row.index)
        self.last = (group, row.index)


def row_data(group: str, members: tuple[int, ...], row: Row) -> list[Any]:
    """A call in the form in which it is published and recorded."""
    place = [row.function, row.filename, row.line]
    return [
        group,
        list(members),
        row.index,
        row.prefix,
        row.digest,
        *place,
        dict(row.others),
        list(row.callers),
        row.aside,
    ]


def read_history(state: str, rows: list[Any], end: Mapping[str, Any] | None = None) -> History:
    """A history from rows in the order of the calls; malformed rows are skipped."""
    history = History(state=state, end=end or {})
    for data in rows:
        try:
            group, members, index, prefix, digest, function, filename, line, others, callers, aside = data
            through = tuple(str(one) for one in callers)
            row = Row(int(index), str(prefix), str(digest), function, filename, line, dict(others), through, aside)
            history.add(str(group), tuple(int(one) for one in members), row)
        except (TypeError, ValueError):
            continue
    return history


def judge(
    histories: Mapping[int, History], programs: Programs, texts: Texts = lambda _process, _digest: {}
) -> Report | None:
    """A proven divergence between the known histories, or None. A difference takes precedence over a missing process.

    ``texts`` returns the lowered module of a process's program, packed, to explain a proven difference.
    """
    found = _difference(histories, programs, texts) or _crossing(histories) or _circle(histories)
    return found or _missing(histories, programs, texts)


def _groups(histories: Mapping[int, History]) -> Iterator[tuple[str, tuple[int, ...], dict[int, History]]]:
    members = {key: group for history in histories.values() for key, group in history.members.items()}
    for key, group in sorted(members.items()):
        yield key, group, {process: histories[process] for process in group if process in histories}


def _difference(histories: Mapping[int, History], programs: Programs, texts: Texts) -> Report | None:
    for key, group, inside, rows in _sequences(histories, programs):
        for first in _different(rows):
            there = {process: one[first] for process, one in rows.items() if first in one}
            records = {process: _record(programs, process, row) for process, row in there.items()}
            found = compare(records)
            if found is None:
                continue  # an unknown field on one side agrees with anything
            processes = {}
            for process, row in there.items():
                processes[process] = row.report("calling")
                processes[process].arguments = records[process].get("arguments")
                processes[process].static = records[process].get("static") or None
                processes[process].recent = _recent(rows[process], first)
            if found.field == "function":
                tell_definitions(processes, records)
            message = differs(first, group, found.words, records)
            report = diverged(found.kind, message, first, processes, found.field)
            if found.kind != "sequence":  # the programs of two functions differ anyway
                report.module = module_difference({p: texts(p, there[p].digest) for p in _one_of_each(there)})
            return explained(report, group, records, _quiet(inside, key), texts)
    return None


def _sequences(
    histories: Mapping[int, History], programs: Programs
) -> Iterator[tuple[str, tuple[int, ...], dict[int, History], Mapping[int, Mapping[int, Row]]]]:
    """The calls of each group by process and number; of several threads, as each device sees them."""
    for key, group, inside in _groups(histories):
        rows = {process: history.rows.get(key, {}) for process, history in inside.items()}
        if not any(history.is_threaded(key) for history in inside.values()):
            yield key, group, inside, rows
            continue
        for seen in by_device(rows, lambda process, row: programs(process, row.digest)):
            yield key, group, inside, seen


def _quiet(inside: Mapping[int, History], key: str) -> dict[int, Sequence[QuietRecord]]:
    return {process: history.quiet.get(key, ()) for process, history in inside.items()}


def _one_of_each(rows: Mapping[int, Row]) -> list[int]:
    """One process for each of the first two calls that differ."""
    digests: dict[str, int] = {}
    for process, row in sorted(rows.items()):
        digests.setdefault(row.digest, process)
    return list(digests.values())[:2]


def _record(programs: Programs, process: int, row: Row) -> dict[str, Any]:
    """The record of a call; for a process that can no longer answer, the function's name."""
    found = dict(programs(process, row.digest)) or {"function": row.function}
    place = {"filename": row.filename, "line": row.line, "callers": list(row.callers)}
    return {**found, **place, "digest": row.digest}


def _different(rows: Mapping[int, Mapping[int, Row]]) -> Iterator[int]:
    """The known positions at which processes made different calls, up to a limit."""
    digests: dict[int, str] = {}
    found: set[int] = set()
    for process in sorted(rows):
        for index, row in rows[process].items():
            if digests.setdefault(index, row.digest) != row.digest:
                found.add(index)
    seen: set[frozenset[str]] = set()
    for index in sorted(found):
        pair = frozenset(one[index].digest for one in rows.values() if index in one)
        if pair not in seen:
            seen.add(pair)
            yield index


def _crossing(histories: Mapping[int, History]) -> Report | None:
    """Two processes that share two groups made their last calls of these groups in a different order."""
    ends = _ends(histories)
    for one, (first, row) in sorted(ends.items()):
        for other, (second, its) in sorted(ends.items()):
            if one >= other or first == second:
                continue
            mine, theirs = histories[one], histories[other]
            shared = other in mine.members.get(first, ()) and one in theirs.members.get(second, ())
            if shared and row.others.get(second, 0) < its.index and its.others.get(first, 0) < row.index:
                processes = {one: row.report("waiting"), other: its.report("waiting")}
                message = _cycle_words(histories, {one: (first, row), other: (second, its)}, "wait", "is")
                return diverged("sequence", message, row.index, processes)
    return None


def _ends(histories: Mapping[int, History]) -> dict[int, tuple[str, Row]]:
    """The last call of each process that made one, and its group."""
    lasts = {process: history.last for process, history in histories.items() if history.last is not None}
    return {process: (key, histories[process].rows[key][index]) for process, (key, index) in lasts.items()}


def _cycle_words(histories: Mapping[int, History], ends: Mapping[int, tuple[str, Row]], wait: str, is_in: str) -> str:
    told = "; ".join(
        f"process {number} {is_in} in call {row.index} of {name_processes(histories[number].members[key])} "
        f"({row.function}, {row.filename}:{row.line})"
        for number, (key, row) in sorted(ends.items())
    )
    return f"the processes {wait} for each other in a cycle: {told}."


def _circle(histories: Mapping[int, History]) -> Report | None:
    """Processes that raised in their last calls, each of which one of the others had not made.

    While they run, this is no proof for more than two: they may go on to the next call without waiting for this one.
    """
    stuck = {
        process: (key, row)
        for process, (key, row) in _ends(histories).items()
        if histories[process].state == "raised"
        and row.line is not None
        and (histories[process].end.get("filename"), histories[process].end.get("line")) == (row.filename, row.line)
    }
    while True:
        waits = {one: _awaited(histories, one, key, row, stuck) for one, (key, row) in stuck.items()}
        awaited = {other for others in waits.values() for other in others}
        left = {one: end for one, end in stuck.items() if waits[one] and one in awaited}
        if len(left) == len(stuck):
            break
        stuck = left
    if not stuck:
        return None
    processes = {}
    for process, (_, row) in stuck.items():
        processes[process] = row.report("raised")
        processes[process].detail = histories[process].end.get("detail")
    first = stuck[min(stuck)][1]
    return diverged("sequence", _cycle_words(histories, stuck, "waited", "was"), first.index, processes)


def _awaited(histories: Mapping[int, History], one: int, key: str, row: Row, among: Iterable[int]) -> list[int]:
    """The processes among these that have not made this call of a group."""
    members = histories[one].members.get(key, ())
    return [other for other in among if other in members and histories[other].counts.get(key, 0) < row.index]


def _missing(histories: Mapping[int, History], programs: Programs, texts: Texts) -> Report | None:
    for key, group, inside in _groups(histories):
        most = max(history.counts.get(key, 0) for history in inside.values())
        short = {p: h for p, h in inside.items() if h.state in ENDED and h.counts.get(key, 0) < most}
        if not short:
            continue
        first = min(short, key=lambda process: short[process].counts.get(key, 0))
        made = short[first].counts.get(key, 0)
        processes: dict[int, ProcessReport] = {}
        for process, history in inside.items():
            row = history.rows.get(key, {}).get(made + 1)
            if row is not None:
                processes[process] = row.report("calling")
                processes[process].recent = _recent(history.rows[key], made + 1)
            else:
                processes[process] = ended_report(history, key)
        ahead = [process for process in inside if inside[process].counts.get(key, 0) > made]
        calling = next((processes[p] for p in ahead if processes[p].state == "calling"), None)
        where = f", {call_words(through_helper(asdict(calling)))}" if calling is not None else ""
        others = f"{name_processes(ahead)} made call {made + 1}{where}"
        message = missing({first: asdict(processes[first])}, made, group, others)
        report = diverged("missing", message, made + 1, processes, short[first].state)
        quiet = _quiet(inside, key)
        if not any(quiet.values()):
            return report
        rows = {process: history.rows.get(key, {}).get(made + 1) for process, history in inside.items()}
        records = {process: _record(programs, process, row) for process, row in rows.items() if row is not None}
        return explained(report, group, records, quiet, texts)
    return None


def ended_report(history: History, group: str) -> ProcessReport:
    """A process without a call at a position: how it ended, otherwise its last call."""
    one = reported(history.end, ended_word({"state": history.state, "detail": history.end.get("detail")}))
    one.detail = history.end.get("detail")
    one.index = history.counts.get(group, 0)
    rows = history.rows.get(group, {})
    if one.line is None and rows:
        last = rows[max(rows)]
        one.function, one.filename, one.line = last.function, last.filename, last.line
        one.callers = list(last.callers)
    return one


def _recent(rows: Mapping[int, Row], upto: int) -> list[dict[str, Any]]:
    return [row.place() for index, row in sorted(rows.items()) if upto - 8 < index <= upto]
