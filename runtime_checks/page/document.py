"""What the page shows, as one JSON object for its script: the report, the table of calls, and source lines.

The table is written once for all processes: the usual call of each row, and for each process what differs from it.
Source lines come from the program's own folders only: a recording comes from other hosts, and a page may be passed on,
so a path in it must not bring in any other file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spmdlint._version import __version__
from spmdlint.runtime_checks.agreement.offline import Recorded
from spmdlint.runtime_checks.page.alignment import Aligned, Call, Key, align
from spmdlint.runtime_checks.records import ModuleDifference, ProgramRecord
from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.reporting.report import Report, argument_words, folded, shared, uneven
from spmdlint.runtime_checks.reporting.sentences import capitalized, name_processes

MAX_CELLS = 3_000_000  # rows times processes: above this, the rows around the difference are kept
MAX_TEXT = 20_000
MAX_ARGUMENTS = 200  # of one process in the report
MAX_TOLD_ARGUMENTS = 20_000  # of all calls in the table together
MAX_EXCERPTS = 200
AROUND_DIFFERENCE = 160  # characters of a module's line on each side of what differs
MAX_DIFFERENCE = 600
AROUND = 2  # lines of an excerpt on each side
MAX_BYTES = 4 << 20
MAX_LINE = 400


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


def document(job: Job) -> dict[str, Any]:
    """The object that the page shows: the report without its processes, with what is made of them and of the calls.

    ``omitted`` is how many rows before and after the table are left out.
    """
    report, aligned = job.report, align(job.recorded.rows)
    mark = min((row for one in job.marks if (row := _marked(one, aligned)) is not None), default=None)
    kept = _kept(aligned, mark)
    table = _table(aligned, kept, job.recorded.programs)
    places = [(process.filename, process.line) for process in report.processes.values()]
    places += [(table["files"][file], line) for _, _, file, line in table["calls"]]
    told = {
        **asdict(replace(report, processes={}, notes=[*report.notes, *job.told])),
        "made_by": f"spmdlint {__version__}",
        "made": job.made,
        "command": job.command,
        "sides": _sides(report),
        "states": {number: process.state for number, process in report.processes.items()},
        "module": _module(report.module),
        "omitted": [kept.start, len(aligned.rows) - kept.stop],
        "excerpts": _excerpts(places, job.sources),
    }
    table |= {"files": _plain(table["files"]), "mark": None if mark is None else mark - kept.start}
    return {**_plain(told), "calls": table}


def _plain(told: Any) -> Any:
    """Data with its texts as they may be shown."""
    if isinstance(told, str):
        return plain(told, MAX_TEXT)
    if isinstance(told, Mapping):
        return {_plain(name): _plain(value) for name, value in told.items()}
    return [_plain(one) for one in told] if isinstance(told, list | tuple) else told


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


def _table(aligned: Aligned, kept: range, known: Mapping[int, Mapping[str, ProgramRecord]]) -> dict[str, Any]:
    """The kept rows by column, with everything in them by number.

    A call is the number of its program, the function, the number of its file, and the line. A lane has its first and
    last call by group, and in turn each row and call in which it differs from the usual.
    """
    rows: Sequence[Key] = aligned.rows[kept.start : kept.stop]
    groups = {group: number for number, group in enumerate(aligned.members)}
    calls: dict[Call, int] = {}
    programs: dict[str, int] = {}
    files: dict[str | None, int] = {}
    usual = [aligned.usual(row) for row in rows]
    numbers = [calls.setdefault(call, len(calls)) for call in usual]
    lanes: list[dict[str, Any]] = []
    for process, lane in aligned.lanes.items():
        other: list[int] = []
        for place, row in enumerate(rows):
            call = lane.calls.get(row)
            if call is not None and call != usual[place]:
                other += (place, calls.setdefault(call, len(calls)))
        spans = {str(groups[group]): span for group, span in lane.spans.items()}
        lanes.append({"process": process, "spans": spans, "other": other})
    told = [
        (
            programs.setdefault(digest, len(programs)),
            plain(str(function or "?"), MAX_TEXT),
            files.setdefault(filename, len(files)),
            line,
        )
        for digest, function, filename, line in calls
    ]
    return {
        "groups": [
            {"members": list(members), "named": name_processes(members)} for members in aligned.members.values()
        ],
        "rows": {"group": [groups[group] for group, _ in rows], "index": [index for _, index in rows], "call": numbers},
        "lanes": lanes,
        "calls": told,
        "files": list(files),
        "programs": _plain(_programs(programs, known)),
    }


def _programs(digests: Iterable[str], known: Mapping[int, Mapping[str, ProgramRecord]]) -> list[dict[str, Any] | None]:
    """What is known of each program; arguments up to a limit in all."""
    found: list[dict[str, Any] | None] = []
    left = MAX_TOLD_ARGUMENTS
    for digest in digests:
        record = next((programs[digest] for programs in known.values() if digest in programs), None)
        if record is None:
            found.append(None)
            continue
        arguments = [argument_words(one) for one in (record.get("arguments") or [])[: min(left, 100)]]
        left -= len(arguments)
        named = {name: value for name in ("name", "value", "defined_at") if (value := record.get(name))}
        found.append({**named, "static": record.get("static") or {}, "arguments": arguments})
    return found


def _sides(report: Report) -> list[dict[str, Any]]:
    """The processes of the report, equal ones together; ``more`` is how many of their arguments are left out."""
    differing, odd = uneven(report.processes)
    sides = []
    for numbers, process in folded(report.processes):
        static = [(f"{name} = {value}", name in odd) for name, value in (process.static or {}).items()]
        arguments = [(argument_words(one), str(one.get("path")) in differing) for one in process.arguments or ()]
        arguments.sort(key=lambda argument: not argument[1])
        side = {name: getattr(process, name) for name in ("state", "index", "function", "line", "detail")}
        sides.append(
            {
                **side,
                "processes": numbers,
                "named": capitalized(name_processes(numbers)),
                "file": process.filename,
                "static": [{"words": words, "differs": differs} for words, differs in static],
                "arguments": [{"words": words, "differs": differs} for words, differs in arguments[:MAX_ARGUMENTS]],
                "more": max(0, len(arguments) - MAX_ARGUMENTS),
                "stack": process.stack or [],
            }
        )
    return sides


def _module(module: ModuleDifference | None) -> dict[str, Any] | None:
    """The first line at which the modules differ, in three parts: what differs, and what is equal around it."""
    if module is None or not module["sides"]:
        return None
    texts = [side["text"] for side in module["sides"]]
    begin = shared(texts)
    end = shared([text[begin:][::-1] for text in texts])
    sides = [
        {
            "named": capitalized(name_processes(side["processes"])),
            "before": ("..." if begin > AROUND_DIFFERENCE else "") + text[:begin][-AROUND_DIFFERENCE:],
            "differs": plain(text[begin : len(text) - end], MAX_DIFFERENCE),
            "after": text[len(text) - end :][:AROUND_DIFFERENCE] + ("..." if end > AROUND_DIFFERENCE else ""),
            "source": side["source"],
        }
        for side, text in zip(module["sides"], texts, strict=True)
    ]
    return {"line": module["line"], "sides": sides}


class Sources:
    """The files below some folders, as they were at the time of the job."""

    def __init__(self, folders: Sequence[Path], unchanged_since: float | None = None) -> None:
        self._folders = [folder.resolve() for folder in folders]
        self._unchanged_since = unchanged_since
        self._lines: dict[str, list[str]] = {}

    def around(self, filename: str | None, line: int | None) -> list[tuple[int, str]]:
        """The numbered lines around a line; none if the file is not there, or was changed since."""
        if not filename or not line:
            return []
        if filename not in self._lines:
            self._lines[filename] = self._read(Path(filename))
        lines = self._lines[filename]
        if not 0 < line <= len(lines):
            return []
        first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
        return [(number, lines[number - 1][:MAX_LINE]) for number in range(first, last + 1)]

    def _read(self, path: Path) -> list[str]:
        try:
            found = path.resolve()
            if found.suffix != ".py" or not any(found.is_relative_to(folder) for folder in self._folders):
                return []
            about = found.stat()
            if about.st_size > MAX_BYTES or (self._unchanged_since and about.st_mtime > self._unchanged_since):
                return []
            return found.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []


def _excerpts(places: Iterable[tuple[str | None, int | None]], sources: Sources) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for filename, line in dict.fromkeys(places):
        lines = sources.around(filename, line)
        if lines and len(found) < MAX_EXCERPTS:
            found[f"{filename}:{line}"] = lines
    return found
