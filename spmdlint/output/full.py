"""Each finding with its source, for a person at a terminal; those that have one cause together."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from spmdlint.diagnostics import Diagnostic, Place, Related, Severity, by_cause, fixable
from spmdlint.output.colors import PLAIN, Palette, palette
from spmdlint.output.report import Report, one_line, parted, summary
from spmdlint.output.snippet import snippet

_CONTEXT = 1


def render(report: Report) -> Iterator[str]:
    """Write the findings."""
    colors = palette() if report.color else PLAIN
    for finding, *others in by_cause(report.diagnostics):
        yield from _finding(finding, report, colors)
        for other in others:
            yield from _other(other, report, colors)
        yield "\n"
    yield f"{colors.bold}{summary(report, by_causes=True)}{colors.reset}\n"


def _other(finding: Diagnostic, report: Report, colors: Palette) -> Iterator[str]:
    """A finding that has the cause of the one before it: what leads to it has been shown there."""
    mark = _mark(finding.severity, colors)
    yield f"{colors.note}also, for the same cause{colors.reset}: {_head(finding, report, colors, mark)}\n"
    yield from _source(finding.place, report, colors, mark, 0)


def _finding(finding: Diagnostic, report: Report, colors: Palette) -> Iterator[str]:
    mark = _mark(finding.severity, colors)
    yield f"{_head(finding, report, colors, mark)}\n"
    yield from _source(finding.place, report, colors, mark, _CONTEXT)
    first, left_out, last = parted(finding.related)
    yield from _steps(first, report, colors)
    if left_out:
        at = shlex.quote(f"{report.shown(finding.place.path)}:{finding.place.start.row}")
        yield f"... and {len(left_out)} more steps (spmdlint explain {at} shows all)\n"
    yield from _steps(last, report, colors)
    if finding.help:
        yield f"{colors.help}help{colors.reset}: {one_line(finding.help)}\n"


def _steps(steps: Sequence[Related], report: Report, colors: Palette) -> Iterator[str]:
    for step in steps:
        yield f"{colors.note}note{colors.reset}: {one_line(step.message)}\n"
        yield from _source(step.place, report, colors, colors.note, 0)


def _head(finding: Diagnostic, report: Report, colors: Palette, mark: str) -> str:
    head = f"{mark}{finding.severity}{colors.reset}: {mark}{finding.code}{colors.reset} "
    head += f"{colors.bold}{finding.name}{colors.reset}"
    if fixable(finding, unsafe=report.unsafe_fixes):
        head += f" [{colors.help}*{colors.reset}]"
    return f"{head}: {one_line(finding.message)}"


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
