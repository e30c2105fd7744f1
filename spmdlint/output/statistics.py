"""The number of findings per rule, the most frequent first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from spmdlint.output.report import Report, summary


def render(report: Report) -> Iterator[str]:
    """Write the counts as a table."""
    counts = _counts(report)
    width = max((len(str(count)) for _, _, count in counts), default=0)
    for code, name, count in counts:
        yield f"{count:>{width}}  {code}  {name}\n"
    yield f"{summary(report)}\n"


def render_json(report: Report) -> Iterator[str]:
    """Write the counts as an array of objects."""
    counts = [{"code": code, "name": name, "count": count} for code, name, count in _counts(report)]
    yield json.dumps(counts, indent=2) + "\n"


def _counts(report: Report) -> list[tuple[str, str, int]]:
    counted = Counter((finding.code, finding.name) for finding in report.diagnostics)
    return [(*key, count) for key, count in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
