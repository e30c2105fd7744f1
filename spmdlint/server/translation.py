"""From findings to what editors read: zero-based lines, and columns in the units that the editor counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from spmdlint.diagnostics import Diagnostic, Edit, Location, Place, Severity
from spmdlint.files.notebooks import Cell, Cells
from spmdlint.files.read import is_notebook
from spmdlint.rule import load_rules
from spmdlint.server.documents import Text
from spmdlint.server.moves import Rows
from spmdlint.server.projects import Project

SEVERITIES: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def changed(text: str, change: types.TextDocumentContentChangeEvent, codec: PositionCodec) -> str:
    """A text after a change by the editor: an edit, or the whole new text."""
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return change.text
    rows = Rows(text)
    start, end = (
        rows.offset(Location(there.line + 1, there.character + 1))
        for there in (
            codec.position_from_client_units(rows.all, each) for each in (change.range.start, change.range.end)
        )
    )
    return text[:start] + change.text + text[end:]


class Translator:
    """Translates the places of one project. ``shows_related``: the editor shows the places that led to a finding."""

    def __init__(self, project: Project, codec: PositionCodec, *, shows_related: bool) -> None:
        self._project = project
        self._codec = codec
        self._shows_related = shows_related

    def diagnostic(self, finding: Diagnostic) -> types.Diagnostic:
        """A finding as editors show it."""
        url = next((rule.url for rule in load_rules() if rule.code == finding.code), None)
        return types.Diagnostic(
            range=self.location(finding.place).range,
            message="\n".join(self._message(finding)),
            severity=SEVERITIES[finding.severity],
            code=finding.code,
            code_description=None if url is None else types.CodeDescription(href=url),
            source="spmdlint",
            related_information=[
                types.DiagnosticRelatedInformation(location=self.location(each.place), message=each.message)
                for each in finding.related
            ]
            if self._shows_related
            else None,
        )

    def edits(self, text: Text, edits: Iterable[Edit]) -> list[types.TextEdit]:
        """Edits of a text of the editor, whose rows they count."""
        return [
            types.TextEdit(
                range=types.Range(
                    start=self._position(text.rows, edit.start.row, edit.start.column),
                    end=self._position(text.rows, edit.end.row, edit.end.column),
                ),
                new_text=edit.content,
            )
            for edit in edits
        ]

    def location(self, place: Place) -> types.Location:
        """Where the editor shows a place."""
        path, start, end = place.path, place.start, place.end
        document = self._project.documents.get(path)
        if document is not None:
            text = document.text_at(start.row)
            first, last = start.row - text.first + 1, end.row - text.first + 1
            end_column = end.column if last <= len(text.rows) else len(text.rows[-1]) + 1
            span = types.Range(
                start=self._position(text.rows, max(first, 1), start.column),
                end=self._position(text.rows, min(last, len(text.rows)), end_column),
            )
            return types.Location(uri=text.uri, range=span)
        if is_notebook(path):
            # Its cells have no place in a file: the line of the file that has the row.
            cell = self._project.cells.get((path, start.row))
            line = 0 if cell is None else cell.line - 1
            return types.Location(path.as_uri(), types.Range(types.Position(line, 0), types.Position(line + 1, 0)))
        span = types.Range(start=self._on_disk(path, start), end=self._on_disk(path, end))
        return types.Location(uri=path.as_uri(), range=span)

    def _on_disk(self, path: Path, location: Location) -> types.Position:
        row = self._project.wide.get((path, location.row))
        if row is None:  # a row of plain ASCII
            return types.Position(line=location.row - 1, character=location.column - 1)
        return types.Position(line=location.row - 1, character=self._units(row, location.column))

    def _position(self, rows: Sequence[str], row: int, column: int) -> types.Position:
        character = self._units(rows[row - 1], column) if row <= len(rows) else column - 1
        return types.Position(line=row - 1, character=character)

    def _units(self, row: str, column: int) -> int:
        """The editor's units before a column, counted from 1."""
        return self._codec.position_to_client_units([row], types.Position(0, column - 1)).character

    def _message(self, finding: Diagnostic) -> Iterator[str]:
        yield f"{self._where(finding.place)}{finding.message}"
        if finding.help:
            yield f"Help: {finding.help}"
        if not self._shows_related:
            for each in finding.related:
                cell = self._cell(each.place)
                row = f"{each.place.start.row}" if cell is None else f"cell {cell.number}:{cell.row}"
                yield f"{each.place.path.name}:{row}: {each.message}"

    def _where(self, place: Place) -> str:
        """Where a finding is in a notebook that the editor does not show by its cells."""
        cell = self._cell(place)
        if cell is None or place.path in self._project.documents:
            return ""
        return f"Cell {cell.number}, line {cell.row}: "

    def _cell(self, place: Place) -> Cell | None:
        """The cell of a place in a notebook."""
        path, row = place.path, place.start.row
        if is_notebook(path) and path in self._project.documents:
            return Cells(self._project.documents[path].text).at(row)
        there = self._project.cells.get((path, row))
        return None if there is None else there.cell
