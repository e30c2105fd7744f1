"""One object of ``json`` per line, for tools that read a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator

from spmdlint.output.json import as_object
from spmdlint.output.report import Report


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    for finding in report.diagnostics:
        yield json.dumps(as_object(finding, report.urls.get(finding.code))) + "\n"
