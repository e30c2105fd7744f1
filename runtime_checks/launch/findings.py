"""The linter's findings on the lines at which processes diverged.

The linter runs as a separate command, so that this package never imports it, and its failure costs only its findings.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.reporting.report import ProcessReport, Report

WITHIN = 15.0  # seconds for the linter: the report must not wait for a large project
MAX_FINDINGS = 5
LINTER = (sys.executable, "-c", "from spmdlint.cli import main; main()", "check", "--output-format", "json")


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
        report.findings = relevant(_lint(sorted(files), linter), lines, report.explained_by)
        found = dict.fromkeys(str(finding["code"]) for finding in report.findings)
        exact = [str(finding["code"]) for finding in report.findings if finding.pop("exact")]
        fitting = [code for code in exact if code in report.explained_by]
        report.explained_by = list(dict.fromkeys(fitting or [*found, *report.explained_by]))


def _lines(process: ProcessReport) -> Iterator[tuple[str, int]]:
    """The line of a process and those that led there: a finding may be where a helper is called."""
    places = [(process.filename, process.line)] if process.filename and process.line else []
    callers = (caller.rpartition(":") for caller in process.callers)
    for filename, line in (*places, *((name, int(line)) for name, _, line in callers if line.isdigit())):
        yield str(Path(filename).resolve()), line


def _lint(files: list[str], linter: Sequence[str]) -> list[Mapping[str, Any]]:
    try:
        done = subprocess.run([*linter, *files], capture_output=True, text=True, timeout=WITHIN, check=False)  # noqa: S603
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def relevant(
    findings: Sequence[Mapping[str, Any]], lines: Set[tuple[str, int]], rules: Sequence[str]
) -> list[dict[str, Any]]:
    """The findings that point to one of the lines, then those in the same files by a rule that explains the kind."""
    exact: list[dict[str, Any]] = []
    near: list[dict[str, Any]] = []
    files = {filename for filename, _ in lines}
    for finding in findings:
        places = [_place(finding), *(_place(other) for other in finding.get("related") or [])]
        told: dict[str, Any] = {
            "code": str(finding.get("code")),
            "message": str(finding.get("message")),
            "place": f"{places[0][0]}:{places[0][1]}",
            "related": [
                {"place": f"{path}:{row}", "message": str(other.get("message"))}
                for other, (path, row) in zip(finding.get("related") or [], places[1:], strict=True)
            ],
        }
        told["exact"] = any(place in lines for place in places)
        if told["exact"]:
            exact.append(told)
        elif places[0][0] in files and finding.get("code") in rules:
            near.append(told)
    return (exact or near)[:MAX_FINDINGS]


def _place(finding: Mapping[str, Any]) -> tuple[str, int]:
    location = finding.get("location") or {}
    return str(Path(str(finding.get("filename"))).resolve()), int(location.get("row") or 0)
