"""GitLab's Code Quality report, which merge requests show next to the changed lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from spmdlint.diagnostics import Severity
from spmdlint.identity import fingerprints, relative
from spmdlint.output.report import Report, one_line

_SEVERITIES: dict[Severity, str] = {"error": "major", "warning": "minor", "info": "info"}


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    prints = fingerprints(report.diagnostics, report.sources, report.top)
    issues = []
    for finding, fingerprint in zip(report.diagnostics, prints, strict=True):
        start, end = finding.place.start, finding.place.end
        way_out = f" {one_line(finding.help)}" if finding.help else ""
        issues.append(
            {
                "check_name": finding.code,
                "description": f"{finding.code} {finding.name}: {one_line(finding.message)}{way_out}",
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[finding.severity],
                "location": {
                    "path": relative(finding.place.path, report.top),
                    "positions": {
                        "begin": {"line": start.row, "column": start.column},
                        "end": {"line": end.row, "column": end.column},
                    },
                },
            }
        )
    yield json.dumps(issues, indent=2) + "\n"
