"""A call that some processes make, and others ran as a program without a collective, which is not counted.

Pure. Such a call alone proves nothing: one process may run a function on its own copy, where nothing is exchanged, and
still reach the call that the others wait in. It explains a difference that is proven otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spmdlint.runtime_checks.agreement.verdict import compare
from spmdlint.runtime_checks.records import Place, QuietRecord, Side
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, diverged, reported
from spmdlint.runtime_checks.reporting.sentences import alike, call_words, callers_of, differs, name_processes, place

NOTHING_TO_EXCHANGE = "as a program without a collective between processes, which is not counted"
REASONED = ("raised", "died")  # ends whose reason is known
RUNNING = ("late", "waiting", "unknown")

Calls = Mapping[int, Side]
Quiet = Mapping[int, Sequence[QuietRecord]]


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
            if process not in makers
            and (stands := _stand_in(call, quiet.get(makers[0], ()), theirs, index, _state(report, process)))
        }
        records: dict[int, Side] = {**{number: calls[number] for number in makers}, **found}
        difference = compare(records) if found else None
        if difference is not None:
            words = difference.words
            named = f"{name_processes(found)} ran it {NOTHING_TO_EXCHANGE}"
            processes = {int(number): one for number, one in report.processes.items()}
            for number, record in records.items():
                processes[number] = _placed(record, index, processes.get(number), number in found)
            told = differs(index, group, words, records) + f" {named[0].upper()}{named[1:]}."
            retold = diverged(difference.kind, told, index, processes, "placement")
            retold.notes = report.notes
            return retold
    return report


def _state(report: Report, process: int) -> str:
    one = report.processes.get(str(process))
    return one.state if one is not None else "unknown"


def _stand_in(
    call: Place, mine: Sequence[QuietRecord], theirs: Sequence[QuietRecord], index: int, state: str
) -> QuietRecord | None:
    """The call of another process that was made instead of this one, if any: from the same line, at the same point."""
    here = [one for one in _unmatched(mine, theirs, index) if _at_one_place(call, one)]
    same = [one for one in here if _one_function(call, one)]
    if same:
        return same[-1]
    others = {one.get("function") for one in here}
    return here[-1] if len(others) == 1 and state not in REASONED else None


def _unmatched(mine: Sequence[QuietRecord], theirs: Sequence[QuietRecord], index: int) -> list[QuietRecord]:
    """The calls of another process before this number that the waiting one has not made in the same way."""
    return [
        one for one in theirs if one.get("after") == index - 1 and not any(_made_too(own, one) for own in mine)
    ]  # fmt: skip


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
    state = before.state if before is not None and not stands_in else "calling"
    one = reported(record, state)
    one.index = index
    one.arguments, one.static = record.get("arguments"), dict(record.get("static") or {}) or None
    one.recent = before.recent if before is not None else []
    one.stack = before.stack if before is not None and not stands_in else None
    if stands_in:
        one.detail = f"{NOTHING_TO_EXCHANGE}{_then(before)}"
    return one


def _then(before: ProcessReport | None) -> str:
    """What a process did after a call that is not counted."""
    if before is None:
        return ""
    at: Place = {"filename": before.filename, "line": before.line}
    if before.state == "calling":
        return f"; then it calls {call_words({'function': before.function, **at})}"
    if before.state == "raised":
        where = f" at {place(at)}" if place(at) else ""
        return f"; then it raised an exception{where} ({before.detail})"
    return f"; then it is {before.state}" if before.state in RUNNING else f"; then {before.state}"
