"""One line per finding, as compilers write them, for editors and ``grep``."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.diagnostics import fixable
from spmdlint.output.report import Report, one_line, summary


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    for finding in report.diagnostics:
        start = finding.place.start
        where = f"{report.shown(finding.place.path)}:{start.row}:{start.column}"
        star = "[*] " if fixable(finding, unsafe=report.unsafe_fixes) else ""
        yield f"{where}: {finding.severity}: {finding.code} {star}{one_line(finding.message)}\n"
    yield f"{summary(report)}\n"
