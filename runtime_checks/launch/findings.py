"""The linter's findings on the lines at which processes diverged.

The linter runs as a separate command, so that this package never imports it, and its failure costs only its findings.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple, TypedDict

from spmdlint.runtime_checks.records import Finding, Step, UnknownRecordError, read_record
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report

WITHIN = 15.0  # seconds for the linter: the report must not wait for a large project
MAX_FINDINGS = 5
MAX_OUTPUT = 64 << 20  # of the linter, for a large project
LINTER = (sys.executable, "-c", "from spmdlint.cli import main; main()", "check", "--output-format", "json")


class Location(TypedDict):
    """A place in a file, in the linter's output."""

    row: int


class LintedPlace(TypedDict):
    """A place that leads to a finding."""

    filename: str
    location: Location
    message: str


class Linted(LintedPlace):
    """A finding in the linter's output."""

    code: str
    related: list[LintedPlace]


class Relevant(NamedTuple):
    """The findings that a report shows; ``exact`` is whether they point to its own lines."""

    findings: list[Finding]
    exact: bool


def join(report: Report, command: Sequence[str], linter: Sequence[str] = LINTER) -> None:
    """Add the linter's findings about its lines, and those that led there, to a report of a divergence or failure.

    If rules that may explain the kind have findings on these very lines, the others are not named; otherwise the rules
    with findings are listed first.
    """
    if report.verdict not in ("diverged", "failed"):
        return
    lines = {place for process in report.processes.values() for place in _lines(process)}
    files = {filename for filename, _ in lines if Path(filename).is_file()}
    if command and Path(command[0]).is_file():
        files.add(str(Path(command[0]).resolve()))
    if files:
        told = relevant(_lint(sorted(files), linter), lines, report.explained_by)
        report.findings = told.findings
        found = dict.fromkeys(finding["code"] for finding in told.findings)
        fitting = [code for code in found if told.exact and code in report.explained_by]
        report.explained_by = fitting or list(dict.fromkeys([*found, *report.explained_by]))


def _lines(process: ProcessReport) -> Iterator[tuple[str, int]]:
    """The line of a process and those that led there: a finding may be where a helper is called."""
    places = [(process.filename, process.line)] if process.filename and process.line else []
    callers = (caller.rpartition(":") for caller in process.callers)
    for filename, line in (*places, *((name, int(line)) for name, _, line in callers if line.isdigit())):
        yield str(Path(filename).resolve()), line


def _lint(files: list[str], linter: Sequence[str]) -> list[Linted]:
    try:
        done = subprocess.run([*linter, *files], capture_output=True, timeout=WITHIN, check=False)  # noqa: S603
        return read_record(done.stdout, list[Linted], "of findings", "that the linter has written", MAX_OUTPUT)
    except (OSError, UnknownRecordError, subprocess.TimeoutExpired):
        return []


def relevant(findings: Sequence[Linted], lines: Set[tuple[str, int]], rules: Sequence[str]) -> Relevant:
    """The findings that point to one of the lines; if there are none, those in the same files by one of the rules."""
    exact: list[Finding] = []
    near: list[Finding] = []
    files = {filename for filename, _ in lines}
    for finding in findings:
        places = [_place(finding), *map(_place, finding["related"])]
        related: list[Step] = [
            {"place": f"{path}:{row}", "message": other["message"]}
            for other, (path, row) in zip(finding["related"], places[1:], strict=True)
        ]
        place = f"{places[0][0]}:{places[0][1]}"
        told: Finding = {"code": finding["code"], "message": finding["message"], "place": place, "related": related}
        if any(place in lines for place in places):
            exact.append(told)
        elif places[0][0] in files and finding["code"] in rules:
            near.append(told)
    return Relevant((exact or near)[:MAX_FINDINGS], exact=bool(exact))


def _place(finding: LintedPlace) -> tuple[str, int]:
    return str(Path(finding["filename"]).resolve()), finding["location"]["row"]
