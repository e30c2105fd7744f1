"""What the page shows, as one JSON object: the report, the table of calls, and source lines.

The table is written once for all processes: the usual call of each row, and for each process what differs from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from spmdlint._version import __version__
from spmdlint.runtime_checks.agreement.offline import Recorded
from spmdlint.runtime_checks.page.alignment import Aligned, Call, Key, Lane, align
from spmdlint.runtime_checks.page.data import (
    Document,
    ShownFinding,
    ShownModule,
    ShownModuleSide,
    ShownProgram,
    ShownSide,
    Table,
    Words,
)
from spmdlint.runtime_checks.page.excerpts import Sources
from spmdlint.runtime_checks.records import Finding, ModuleDifference
from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.reporting.report import (
    ProcessReport,
    Report,
    argument_words,
    folded,
    uneven_arguments,
    uneven_static,
)
from spmdlint.runtime_checks.reporting.sentences import name_processes

MAX_CELLS = 3_000_000  # rows times processes: above this, the rows around the difference are kept
MAX_ARGUMENTS = 200  # of one process in the report
MAX_TOLD_ARGUMENTS = 20_000  # of all calls in the table together
MAX_EXCERPTS = 200
AROUND_DIFFERENCE = 160  # characters of a module's line on each side of what differs
MAX_DIFFERENCE = 600
_NAMED: tuple[Literal["name", "value", "defined_at"], ...] = ("name", "value", "defined_at")


@dataclass(frozen=True, slots=True)
class Job:
    """What a page is made of.

    ``marks`` are the calls to look at first, each as the set of processes and the number there. ``told`` are remarks on
    the recordings, ``command`` is what was run, "" if unknown.
    """

    report: Report
    recorded: Recorded
    sources: Sources
    marks: Sequence[tuple[Sequence[int], int]] = ()
    command: str = ""
    made: str = ""
    told: Sequence[str] = ()


def document(job: Job) -> Document:
    """The object that the page shows."""
    report = job.report
    aligned = align(job.recorded.rows)
    mark = min((row for one in job.marks if (row := _marked(one, aligned)) is not None), default=None)
    kept = _kept(aligned, mark)
    table = _Table(aligned, aligned.rows[kept.start : kept.stop], job.recorded)
    places = [(process.filename, process.line) for process in report.processes.values()]
    places += table.places()
    return {
        "made_by": f"spmdlint {__version__}",
        "made": job.made,
        "command": plain(job.command),
        "verdict": report.verdict,
        "kind": report.kind,
        "message": plain(report.message, 20_000),
        "advice": report.advice,
        "rules": list(report.explained_by),
        "sides": _sides(report),
        "module": _module(report.module),
        "findings": [_finding(found) for found in report.findings],
        "notes": [plain(note) for note in (*report.notes, *job.told)],
        "versions": {plain(name): plain(text) for name, text in report.versions.items()},
        "layers": {plain(name): plain(text) for name, text in report.layers.items()},
        "states": {number: process.state for number, process in report.processes.items()},
        "calls": table.as_data(mark),
        "omitted": [kept.start, len(aligned.rows) - kept.stop],
        "excerpts": _excerpts(places, job.sources),
    }


def _marked(mark: tuple[Sequence[int], int], aligned: Aligned) -> int | None:
    """The row of a call: of the smallest set with these processes, as one without a recording is not in a report."""
    wanted, index = set(mark[0]), mark[1]
    keys = {(group, index) for group, members in aligned.members.items() if wanted <= set(members)}
    found = [number for number, key in enumerate(aligned.rows) if key in keys]
    return min(found, key=lambda number: len(aligned.members[aligned.rows[number][0]]), default=None)


def _kept(aligned: Aligned, mark: int | None) -> range:
    """The rows that are shown: all, or those around the difference, or the last."""
    many = len(aligned.rows)
    most = max(100, MAX_CELLS // max(1, len(aligned.lanes)))
    last = many if mark is None else min(many, max(most, mark + most // 2))
    return range(max(0, last - most), last)


class _Table:
    """The rows with everything in them by number."""

    def __init__(self, aligned: Aligned, rows: Sequence[Key], recorded: Recorded) -> None:
        self._aligned = aligned
        self._rows = rows
        self._recorded = recorded
        self._offset = aligned.rows.index(rows[0]) if rows else 0
        self._groups = {group: number for number, group in enumerate(aligned.members)}
        self._calls: dict[Call, int] = {}
        self._files: dict[str | None, int] = {}
        self._programs: dict[str, int] = {}
        self._usual = [aligned.usual(row) for row in rows]
        self._usual_numbers = [self._number(call) for call in self._usual]
        self._other = {process: self._others(lane) for process, lane in aligned.lanes.items()}

    def _number(self, call: Call) -> int:
        return self._calls.setdefault(call, len(self._calls))

    def _others(self, lane: Lane) -> list[int]:
        """The rows in which a process calls something else, each with the number of that call."""
        found: list[int] = []
        for number, row in enumerate(self._rows):
            call = lane.calls.get(row)
            if call is not None and call != self._usual[number]:
                found += (number, self._number(call))
        return found

    def places(self) -> list[tuple[str | None, int | None]]:
        """The lines that are called from."""
        return [(filename, line) for _, _, filename, line in self._calls]

    def as_data(self, mark: int | None) -> Table:
        """The table; ``mark`` is the row of the difference among all rows."""
        calls = [
            (
                self._programs.setdefault(digest, len(self._programs)),
                plain(str(function or "?"), 200),
                self._files.setdefault(filename, len(self._files)),
                line,
            )
            for digest, function, filename, line in self._calls
        ]
        at = None if mark is None else mark - self._offset
        return {
            "groups": [
                {"members": list(members), "named": name_processes(members)}
                for members in self._aligned.members.values()
            ],
            "rows": {
                "group": [self._groups[group] for group, _ in self._rows],
                "index": [index for _, index in self._rows],
                "call": self._usual_numbers,
            },
            "lanes": [
                {
                    "process": process,
                    "spans": {str(self._groups[group]): span for group, span in lane.spans.items()},
                    "other": self._other[process],
                }
                for process, lane in self._aligned.lanes.items()
            ],
            "calls": calls,
            "files": [None if filename is None else plain(str(filename)) for filename in self._files],
            "programs": self._told_programs(),
            "mark": at,
        }

    def _told_programs(self) -> list[ShownProgram | None]:
        """What is known of each program, in the order of their numbers; arguments up to a limit in all."""
        found: list[ShownProgram | None] = []
        left = MAX_TOLD_ARGUMENTS
        for digest in self._programs:
            known = (programs[digest] for programs in self._recorded.programs.values() if digest in programs)
            record = next(known, None)
            if record is None:
                found.append(None)
                continue
            arguments = [plain(argument_words(one)) for one in (record.get("arguments") or [])[: min(left, 100)]]
            left -= len(arguments)
            static = {plain(name): plain(value) for name, value in (record.get("static") or {}).items()}
            told: ShownProgram = {"static": static, "arguments": arguments}
            for field in _NAMED:
                if value := record.get(field):
                    told[field] = plain(value)
            found.append(told)
        return found


def _sides(report: Report) -> list[ShownSide]:
    """The processes of the report, equal ones together."""
    uneven, odd = uneven_arguments(report.processes), uneven_static(report.processes)
    return [_side(numbers, process, uneven, odd) for numbers, process in folded(report.processes)]


def _side(numbers: list[int], process: ProcessReport, uneven: set[str], odd: set[str]) -> ShownSide:
    arguments: list[Words] = [
        {"words": plain(argument_words(argument)), "differs": str(argument.get("path")) in uneven}
        for argument in process.arguments or []
    ]
    arguments.sort(key=lambda argument: not argument["differs"])
    named = name_processes(numbers)
    return {
        "processes": numbers,
        "named": named[0].upper() + named[1:],
        "state": process.state,
        "index": process.index,
        "function": None if process.function is None else plain(process.function, 200),
        "file": None if process.filename is None else plain(process.filename),
        "line": process.line,
        "detail": None if process.detail is None else plain(process.detail, 20_000),
        "static": [
            {"words": plain(f"{name} = {value}"), "differs": name in odd}
            for name, value in (process.static or {}).items()
        ],
        "arguments": arguments[:MAX_ARGUMENTS],
        "more": max(0, len(arguments) - MAX_ARGUMENTS),
        "stack": [plain(frame) for frame in process.stack or []],
    }


def _module(module: ModuleDifference | None) -> ShownModule | None:
    """The first line at which the modules differ, in three parts: what differs, and what is equal around it."""
    if module is None or not module["sides"]:
        return None
    texts = [side["text"] for side in module["sides"]]
    begin = _shared(texts)
    end = _shared([text[begin:][::-1] for text in texts])
    told: list[ShownModuleSide] = []
    for side, text in zip(module["sides"], texts, strict=True):
        before, middle, after = text[:begin], text[begin : len(text) - end], text[len(text) - end :]
        source = side["source"]
        named = name_processes(side["processes"])
        told.append(
            {
                "named": named[0].upper() + named[1:],
                "before": plain(("..." if begin > AROUND_DIFFERENCE else "") + before[-AROUND_DIFFERENCE:]),
                "differs": plain(middle, MAX_DIFFERENCE),
                "after": plain(after[:AROUND_DIFFERENCE] + ("..." if end > AROUND_DIFFERENCE else "")),
                "source": None if source is None else plain(source),
            }
        )
    return {"line": module["line"], "sides": told}


def _shared(texts: Sequence[str]) -> int:
    """How many characters all texts begin with."""
    for number, letters in enumerate(zip(*texts, strict=False)):
        if len(set(letters)) > 1:
            return number
    return min(map(len, texts))


def _finding(found: Finding) -> ShownFinding:
    return {
        "code": plain(found["code"]),
        "place": plain(found["place"]),
        "message": plain(found["message"]),
        "steps": [{"place": plain(step["place"]), "message": plain(step["message"])} for step in found["related"]],
    }


def _excerpts(places: Iterable[tuple[str | None, int | None]], sources: Sources) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for filename, line in dict.fromkeys(places):
        lines = sources.around(filename, line)
        if lines and len(found) < MAX_EXCERPTS:
            found[plain(f"{filename}:{line}")] = [(number, plain(text)) for number, text in lines]
    return found
