"""SARIF 2.1.0, which GitHub's code scanning, Azure DevOps and editors read.

Paths are relative to the work tree, so that the output is the same on every machine. All rules are declared, not only
those with findings: a server closes an alert if its rule is declared and its result is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from spmdlint._version import __version__
from spmdlint.diagnostics import Diagnostic, Edit, Fix, Location, Place, Severity
from spmdlint.identity import fingerprints, relative
from spmdlint.output.report import Description, Report, one_line

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report)]}, indent=2) + "\n"


def _run(report: Report) -> dict[str, object]:
    numbers = {rule.code: number for number, rule in enumerate(report.rules)}
    found = {finding.code for finding in report.diagnostics}
    prints = fingerprints(report.diagnostics, report.sources, report.top)
    return {
        "tool": {
            "driver": {
                "name": "spmdlint",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": "https://pypi.org/project/spmdlint/",
                "rules": [_rule(rule) if rule.code in found else _named(rule) for rule in report.rules],
            }
        },
        "invocations": [{"executionSuccessful": report.complete}],
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the work tree."}}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, fingerprint, numbers, report)
            for finding, fingerprint in zip(report.diagnostics, prints, strict=True)
        ],
    }


def _named(rule: Description) -> dict[str, object]:
    """A rule without a finding: that it ran is worth a line, and its page is not worth several kilobytes."""
    return {"id": rule.code, "name": rule.name, "shortDescription": {"text": rule.summary}}


def _rule(rule: Description) -> dict[str, object]:
    return {
        **_named(rule),
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity], "enabled": not rule.preview},
        "properties": {
            "tags": ["correctness", "spmd", *(["preview"] if rule.preview else [])],
            "problem.severity": "recommendation" if rule.severity == "info" else rule.severity,
            "precision": "medium" if rule.preview else "high",
        },
        **({"helpUri": rule.url} if rule.url else {}),
    }


def _result(finding: Diagnostic, fingerprint: str, numbers: Mapping[str, int], report: Report) -> dict[str, object]:
    way_out = f" {one_line(finding.help)}" if finding.help else ""
    result: dict[str, object] = {
        "ruleId": finding.code,
        **({"ruleIndex": numbers[finding.code]} if finding.code in numbers else {}),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{one_line(finding.message)}{way_out}"},
        "locations": [{"physicalLocation": _place(finding.place, report.top)}],
        # GitHub computes the second from the lines around a result if it is not given.
        "partialFingerprints": {"spmdlint/v1": fingerprint, "primaryLocationLineHash": fingerprint},
    }
    if finding.related:
        steps = [(related.place, one_line(related.message)) for related in finding.related]
        result["relatedLocations"] = [
            {"id": number, **_located(place, text, report.top)} for number, (place, text) in enumerate(steps, start=1)
        ]
        flow = [*steps, (finding.place, one_line(finding.message))]
        locations = [{"location": _located(place, text, report.top)} for place, text in flow]
        result["codeFlows"] = [{"threadFlows": [{"locations": locations}]}]
    if finding.fix is not None:
        result["fixes"] = [_fix(finding.fix, finding.place.path, report.top)]
    return result


def _located(place: Place, text: str, top: Path) -> dict[str, object]:
    return {"physicalLocation": _place(place, top), "message": {"text": text}}


def _place(place: Place, top: Path) -> dict[str, object]:
    return {"artifactLocation": _artifact(place.path, top), "region": _region(place.start, place.end)}


def _artifact(path: Path, top: Path) -> dict[str, object]:
    if top not in path.parents:
        return {"uri": path.as_uri()}
    return {"uri": quote(relative(path, top)), "uriBaseId": ROOT}


def _region(start: Location, end: Location) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _fix(fix: Fix, path: Path, top: Path) -> dict[str, object]:
    unsafe = " (unsafe: review it before you apply it)" if fix.applicability == "unsafe" else ""
    return {
        "description": {"text": f"{fix.message}{unsafe}"},
        "artifactChanges": [
            {"artifactLocation": _artifact(path, top), "replacements": [_replacement(edit) for edit in fix.edits]}
        ],
    }


def _replacement(edit: Edit) -> dict[str, object]:
    return {"deletedRegion": _region(edit.start, edit.end), "insertedContent": {"text": edit.content}}
