"""An array of objects in ruff's shape, so that tools for ruff can read it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from spmdlint.diagnostics import Diagnostic, Edit, Fix, Location, Place, Related
from spmdlint.output.report import Report, split_cell


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    yield (json.dumps([as_object(each, report.urls.get(each.code)) for each in report.diagnostics], indent=2) + "\n")


def as_object(finding: Diagnostic, url: str | None) -> dict[str, object]:
    """One finding."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "help": finding.help,
        "url": url,
        **_place(finding.place),
        "related": [_related(each) for each in finding.related],
        "fix": None if finding.fix is None else _fix(finding.fix),
    }


def _place(place: Place) -> dict[str, object]:
    filename, cell = split_cell(place.path)
    return {
        "filename": filename,
        "cell": cell,
        "location": _location(place.start),
        "end_location": _location(place.end),
    }


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _related(related: Related) -> dict[str, object]:
    return {**_place(related.place), "message": related.message}


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, object]:
    return {
        "content": edit.content,
        "location": _location(edit.start),
        "end_location": _location(edit.end),
    }
