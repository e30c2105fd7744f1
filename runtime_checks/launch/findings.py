"""The linter's findings on the lines at which processes diverged.

The linter runs as a separate command, so that this package never imports it, and its failure costs only its findings.
It is asked after the verdict has been printed, and what it has started ends with it.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from spmdlint.runtime_checks.launch.starting import command_of
from spmdlint.runtime_checks.records import Finding, Step, UnknownRecordError, read_record
from spmdlint.runtime_checks.reporting.report import ADVICE_ON, ProcessReport, Report
from spmdlint.runtime_checks.reporting.sentences import is_without_exit

WITHIN = 10.0  # seconds for the linter, after the verdict: the command must not wait for a large project
TICK = 0.1
MAX_FINDINGS = 5
MAX_OUTPUT = 64 << 20  # of the linter, for a large project
ON_LINE, ON_PATH, LEADS = range(3)  # the ranks of findings: see `relevant`
LINTER = (*command_of("spmdlint.cli"), "check", "--output-format", "json")


class Location(TypedDict):
    row: int


class LintedPlace(TypedDict):
    filename: str
    location: Location
    message: str


class Linted(LintedPlace):
    """A finding in the linter's output."""

    code: str
    related: list[LintedPlace]


def join(
    report: Report,
    command: Sequence[str],
    linter: Sequence[str] = LINTER,
    *,
    within: float = WITHIN,
    environment: Mapping[str, str] | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> None:
    """Add the linter's findings about its lines, and those that led there, to a report of a divergence or failure.

    Only rules that may explain the kind count, and only those that have findings are named. The linter is ended after
    so many seconds, or once it is ``interrupted``.
    """
    if report.verdict not in ("diverged", "failed"):
        return
    rules, report.explained_by = report.explained_by, []
    telling = _telling(report)
    lines = {place for process in telling for place in _lines(process)}
    uncalled = {place for process in telling if not (process.callers or process.stack) for place in _lines(process)}
    files = {filename for filename, _ in lines if Path(filename).is_file()}
    if not files:
        return
    if command and Path(command[0]).is_file():
        files.add(str(Path(command[0]).resolve()))
    found = _lint([*linter, *sorted(files)], within, environment, interrupted)
    if not isinstance(found, str):
        report.findings = relevant(found, lines, uncalled, rules)
    else:
        first = min((place for process in telling for place in list(_lines(process))[:1]), default=("FILE", 0))
        report.notes.append(
            f"The linter {found}, so its findings are not among these lines. Ask it about one of them: "
            f"spmdlint explain {first[0]}:{first[1]}"
        )
    known = rules[:1] if report.advice == ADVICE_ON["threads"] else []  # which the checks have seen themselves
    report.explained_by = list(dict.fromkeys([*known, *(finding["code"] for finding in report.findings)]))


def _telling(report: Report) -> list[ProcessReport]:
    """The processes whose lines may have a cause that the linter sees.

    What ends a process by a signal, or without an exception, is on no line that is known. If an exception did it, that
    is on the lines it passed through; the others only wait.
    """
    processes = list(report.processes.values())
    ended = any(one.state in ("died", "raised") or is_without_exit(one.detail) for one in processes)
    if report.kind not in (None, "missing") or not ended:
        return processes
    return [one for one in processes if one.state == "raised"]


def _lines(process: ProcessReport) -> Iterator[tuple[str, int]]:
    """The line of a process and those that led there: a finding may be where a helper is called."""
    places = [(process.filename, process.line)] if process.filename and process.line else []
    callers = (caller.rpartition(":") for caller in process.callers)
    stack = (entry.rpartition(" in ")[0].rpartition(":") for entry in process.stack or ())
    around = [(name, int(line)) for name, _, line in (*callers, *stack) if line.isdigit()]
    for filename, line in (*places, *around):
        yield str(Path(filename).resolve()), line


def _lint(
    words: Sequence[str], within: float, environment: Mapping[str, str] | None, interrupted: Callable[[], bool]
) -> list[Linted] | str:
    """What the linter has found, or why it was ended before it finished."""
    try:
        running = subprocess.Popen(  # noqa: S603
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return []
    limit = time.monotonic() + within
    try:
        while True:
            try:
                output, _ = running.communicate(timeout=TICK)
                return read_record(output, list[Linted], "of findings", "that the linter has written", MAX_OUTPUT)
            except subprocess.TimeoutExpired:
                if interrupted():
                    return "was interrupted"
                if time.monotonic() > limit:
                    return f"did not finish within {within:.0f} s"
            except UnknownRecordError:
                return []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)  # its workers as well
        running.communicate()


def relevant(
    findings: Sequence[Linted], lines: Set[tuple[str, int]], uncalled: Set[tuple[str, int]], rules: Sequence[str]
) -> list[Finding]:
    """The findings that point to one of the lines, by one of the rules if there are any.

    First those on the lines themselves, then those of a function on the path that only lead to such a line. If there
    are none, those of other functions that lead to one of the ``uncalled``, the lines of processes of which nothing
    else is known: a helper for many cases has findings about each of them, and any may be the caller.
    """
    path, open_end = _Path(lines), _Path(uncalled)
    ranked: dict[int, list[Finding]] = {ON_LINE: [], ON_PATH: [], LEADS: []}
    for finding in findings:
        places = [_place(finding), *map(_place, finding["related"])]
        rank = path.rank(places)
        if rank is None or (rules and finding["code"] not in rules):
            continue
        if rank == LEADS and open_end.rank(places) is None:
            continue
        related: list[Step] = [
            {"place": f"{filename}:{row}", "message": other["message"]}
            for other, (filename, row) in zip(finding["related"], places[1:], strict=True)
        ]
        place = f"{places[0][0]}:{places[0][1]}"
        ranked[rank].append(
            {"code": finding["code"], "message": finding["message"], "place": place, "related": related}
        )
    return ([*ranked[ON_LINE], *ranked[ON_PATH]] or ranked[LEADS])[:MAX_FINDINGS]


class _Path:
    """The lines of a report, to ask how a finding stands to them."""

    def __init__(self, lines: Set[tuple[str, int]]) -> None:
        self._lines = lines
        self._spans = {filename: _spans_of(filename) for filename, _ in lines}

    def rank(self, places: Sequence[tuple[str, int]]) -> int | None:
        """How a finding with this place and these related ones stands to the lines; None if not at all."""
        own = places[0]
        if self._is_on(own):
            return ON_LINE
        if not any(self._is_on(place) or self._calls(own, place) for place in places[1:]):
            return None
        return ON_PATH if self._is_inside(own) else LEADS

    def _is_on(self, place: tuple[str, int]) -> bool:
        """Whether a place is in the statement of a line: Python and the linter may name two lines of a long call."""
        filename, row = place
        statements = [span for span in self._spans.get(filename, ([], []))[0] if row in span]
        return any(
            row == line or any(line in span for span in statements) for name, line in self._lines if name == filename
        )

    def _calls(self, own: tuple[str, int], place: tuple[str, int]) -> bool:
        """Whether a related place is in another function, one of the lines as well: the function that is called."""
        around = self._function(place)
        return around is not None and around != self._function(own) and self._is_inside(place)

    def _is_inside(self, place: tuple[str, int]) -> bool:
        """Whether one of the lines is in the function of a place, or both are a module's own."""
        around = self._function(place)
        return any(line[0] == place[0] and self._function(line) == around for line in self._lines)

    def _function(self, place: tuple[str, int]) -> tuple[str, range] | None:
        """The innermost function around a place; None for a module's own lines."""
        filename, row = place
        around = [span for span in self._spans.get(filename, ([], []))[1] if row in span]
        return (filename, min(around, key=len)) if around else None


def _place(finding: LintedPlace) -> tuple[str, int]:
    return str(Path(finding["filename"]).resolve()), finding["location"]["row"]


def _spans_of(filename: str) -> tuple[list[range], list[range]]:
    """The lines of the statements and of the functions of a file; none if it cannot be read or parsed."""
    statements: list[range] = []
    functions: list[range] = []
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return statements, functions
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.stmt) and not hasattr(node, "body") and not isinstance(node, ast.Match):
            statements.append(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return statements, functions
