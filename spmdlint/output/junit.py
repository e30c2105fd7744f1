"""JUnit's XML, which CI servers show as failed tests: a suite for each file, a case for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from spmdlint.diagnostics import Diagnostic
from spmdlint.output.report import Report, one_line


def render(report: Report) -> Iterator[str]:
    """Write the findings; a run without findings is one passed test."""
    count = len(report.diagnostics)
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield f'<testsuites name="spmdlint" tests="{max(count, 1)}" failures="{count}" errors="0">\n'
    for path, group in groupby(report.diagnostics, key=lambda finding: finding.place.path):
        findings = list(group)
        failures = f'tests="{len(findings)}" failures="{len(findings)}" errors="0" skipped="0"'
        yield f"  <testsuite name={_attribute(report.shown(path))} {failures}>\n"
        for finding in findings:
            yield from _case(finding, report)
        yield "  </testsuite>\n"
    if not count:
        yield '  <testsuite name="spmdlint" tests="1" failures="0" errors="0" skipped="0">\n'
        yield '    <testcase name="No findings" classname="spmdlint"/>\n'
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _case(finding: Diagnostic, report: Report) -> Iterator[str]:
    start = finding.place.start
    path = report.shown(finding.place.path)
    lines = [f"{path}:{start.row}:{start.column}: {one_line(finding.message)}"]
    for related in finding.related:
        at = related.place
        lines.append(f"{report.shown(at.path)}:{at.start.row}:{at.start.column}: {one_line(related.message)}")
    if finding.help:
        lines.append(f"Help: {one_line(finding.help)}")
    name = _attribute(f"{finding.code} {finding.name}")
    where = f'file={_attribute(path)} line="{start.row}" column="{start.column}"'
    yield f"    <testcase name={name} classname={_attribute(path)} {where}>\n"
    text = escape(_valid("\n".join(lines)))
    yield f"      <failure message={_attribute(one_line(finding.message))}>{text}</failure>\n"
    yield "    </testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_valid(text))


def _valid(text: str) -> str:
    """The text without the control characters that XML cannot represent."""
    return "".join(character if character >= " " or character in "\t\n\r" else "\ufffd" for character in text)
