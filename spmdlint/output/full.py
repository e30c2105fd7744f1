"""Each finding with its source, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.diagnostics import Diagnostic, Place, Severity, fixable
from spmdlint.output.colors import PLAIN, Palette, palette
from spmdlint.output.report import Report, one_line, summary
from spmdlint.output.snippet import snippet

_CONTEXT = 1


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    colors = palette() if report.color else PLAIN
    for finding in report.diagnostics:
        yield from _finding(finding, report, colors)
        yield "\n"
    yield f"{colors.bold}{summary(report)}{colors.reset}\n"


def _finding(finding: Diagnostic, report: Report, colors: Palette) -> Iterator[str]:
    mark = _mark(finding.severity, colors)
    head = f"{mark}{finding.code}{colors.reset} {colors.bold}{finding.name}{colors.reset}"
    if fixable(finding, unsafe=report.unsafe_fixes):
        head += f" [{colors.help}*{colors.reset}]"
    yield f"{head}: {one_line(finding.message)}\n"
    yield from _source(finding.place, report, colors, mark, _CONTEXT)
    for related in finding.related:
        yield f"{colors.note}note{colors.reset}: {one_line(related.message)}\n"
        yield from _source(related.place, report, colors, colors.note, 0)
    if finding.help:
        yield f"{colors.help}help{colors.reset}: {one_line(finding.help)}\n"


def _source(place: Place, report: Report, colors: Palette, mark: str, context: int) -> Iterator[str]:
    title = f"{report.shown(place.path)}:{place.start.row}:{place.start.column}"
    source = report.sources.get(place.path)
    if source is None:
        yield f" {colors.frame}-->{colors.reset} {title}\n"
        return
    for gutter, text, underline in snippet(source.lines(), place, context, title):
        body = f"{mark}{text}{colors.reset}" if underline and text else text
        yield f"{colors.frame}{gutter}{colors.reset}{' ' if text else ''}{body}\n"


def _mark(severity: Severity, colors: Palette) -> str:
    return {"error": colors.error, "warning": colors.warning, "info": colors.note}[severity]
