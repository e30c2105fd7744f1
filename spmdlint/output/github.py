"""Workflow commands of GitHub Actions: each finding becomes an annotation on the changed lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from spmdlint.diagnostics import Diagnostic, Severity
from spmdlint.output.report import Report, one_line

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    for finding in report.diagnostics:
        yield f"::{_LEVELS[finding.severity]} {_properties(finding)}::{_data(_text(finding, report))}\n"


def _properties(finding: Diagnostic) -> str:
    start, end = finding.place.start, finding.place.end
    values = {
        "title": f"spmdlint ({finding.code} {finding.name})",
        "file": _from_workspace(finding.place.path),
        "line": start.row,
        "endLine": end.row,
    }
    if start.row == end.row:  # GitHub accepts columns only within a line
        values |= {"col": start.column, "endColumn": end.column}
    return ",".join(f"{name}={_property(str(value))}" for name, value in values.items())


def _text(finding: Diagnostic, report: Report) -> str:
    start = finding.place.start
    where = f"{report.shown(finding.place.path)}:{start.row}:{start.column}"
    lines = [f"{where}: {finding.code} {one_line(finding.message)}"]
    for related in finding.related:
        at = related.place
        lines.append(f"{report.shown(at.path)}:{at.start.row}:{at.start.column}: {one_line(related.message)}")
    if finding.help:
        lines.append(f"Help: {one_line(finding.help)}")
    return "\n".join(lines)


def _from_workspace(path: Path) -> str:
    """The path as GitHub wants it: relative to the checkout, wherever the step runs."""
    workspace = Path(os.path.realpath(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()))
    return path.relative_to(workspace).as_posix() if workspace in path.parents else str(path)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
