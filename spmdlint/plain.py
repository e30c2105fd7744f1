"""Findings as plain data, to be written to a file or passed between processes, and read back."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from spmdlint.changes import Change
from spmdlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Location, Place, Related, Severity


class PlainFinding(Struct, array_like=True):
    """A finding, field by field; paths are bytes, because not every path is valid text."""

    code: str
    name: str
    severity: Severity
    message: str
    place: _Span
    help: str
    related: list[tuple[_Span, str]]
    fix: tuple[Applicability, str, list[tuple[int, int, int, int, str]], Change | None] | None
    cause: list[_Span]
    also: list[tuple[str, _Span]]
    through: str


_Span = tuple[bytes, int, int, int, int]


def plain(finding: Diagnostic) -> PlainFinding:
    """A finding as plain data."""
    fix = finding.fix
    return PlainFinding(
        finding.code,
        finding.name,
        finding.severity,
        finding.message,
        _span(finding.place),
        finding.help,
        [(_span(related.place), related.message) for related in finding.related],
        None
        if fix is None
        else (fix.applicability, fix.message, [(*_ends(e), e.content) for e in fix.edits], fix.change),
        list(map(_span, finding.cause)),
        [(code, _span(place)) for code, place in finding.also],
        finding.through,
    )


def diagnostic(kept: PlainFinding) -> Diagnostic:
    """The finding for plain data."""
    fix = None
    if kept.fix is not None:
        applicability, message, edits, change = kept.fix
        fix = Fix(applicability, message, tuple(_edit(edit) for edit in edits), change)
    related = tuple(Related(_place(span), text) for span, text in kept.related)
    place, cause = _place(kept.place), tuple(map(_place, kept.cause))
    also = tuple((code, _place(span)) for code, span in kept.also)
    return Diagnostic(
        kept.code,
        kept.name,
        kept.severity,
        kept.message,
        place,
        kept.help,
        related,
        fix,
        cause,
        also,
        kept.through,
    )


def _span(place: Place) -> _Span:
    return (os.fsencode(place.path), *_ends(place))


def _ends(span: Place | Edit) -> tuple[int, int, int, int]:
    return span.start.row, span.start.column, span.end.row, span.end.column


def _place(span: _Span) -> Place:
    path, row, column, end_row, end_column = span
    return Place(_path(path), Location(row, column), Location(end_row, end_column))


def _edit(edit: tuple[int, int, int, int, str]) -> Edit:
    row, column, end_row, end_column, content = edit
    return Edit(Location(row, column), Location(end_row, end_column), content)


def _path(path: bytes) -> Path:
    return Path(os.fsdecode(path))
