"""From findings to what editors read: zero-based lines, and columns in the units that the editor counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from spmdlint.diagnostics import Diagnostic, Edit, Location, Place, Severity
from spmdlint.rule import load_rules
from spmdlint.server.projects import Project

SEVERITIES: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


class Translator:
    """Translates the places of one project. ``shows_related``: the editor shows the places that led to a finding."""

    def __init__(self, project: Project, codec: PositionCodec, *, shows_related: bool) -> None:
        self._project = project
        self._codec = codec
        self._shows_related = shows_related

    def uri(self, path: Path) -> str:
        """The name of a file, as the editor spells it if the file is open."""
        document = self._project.documents.get(path)
        return path.as_uri() if document is None else document.uri

    def diagnostic(self, finding: Diagnostic) -> types.Diagnostic:
        """A finding as editors show it."""
        url = next((rule.url for rule in load_rules() if rule.code == finding.code), None)
        return types.Diagnostic(
            range=self.range(finding.place.path, finding.place.start, finding.place.end),
            message="\n".join(self._message(finding)),
            severity=SEVERITIES[finding.severity],
            code=finding.code,
            code_description=None if url is None else types.CodeDescription(href=url),
            source="spmdlint",
            related_information=[
                types.DiagnosticRelatedInformation(location=self._location(each.place), message=each.message)
                for each in finding.related
            ]
            if self._shows_related
            else None,
        )

    def edits(self, path: Path, edits: Iterator[Edit] | tuple[Edit, ...]) -> list[types.TextEdit]:
        """Edits of a file."""
        return [types.TextEdit(range=self.range(path, edit.start, edit.end), new_text=edit.content) for edit in edits]

    def range(self, path: Path, start: Location, end: Location) -> types.Range:
        """A span of a file."""
        return types.Range(start=self._position(path, start), end=self._position(path, end))

    def _location(self, place: Place) -> types.Location:
        return types.Location(uri=self.uri(place.path), range=self.range(place.path, place.start, place.end))

    def _position(self, path: Path, location: Location) -> types.Position:
        here = types.Position(line=0, character=location.column - 1)
        row = self._row(path, location.row)
        column = here.character if row is None else self._codec.position_to_client_units([row], here).character
        return types.Position(line=location.row - 1, character=column)

    def _row(self, path: Path, number: int) -> str | None:
        """A row in which columns may differ; None for one of plain ASCII."""
        document = self._project.documents.get(path)
        if document is None:
            return self._project.wide.get((path, number))
        return document.rows.all[number - 1] if number <= len(document.rows.all) else None

    def _message(self, finding: Diagnostic) -> Iterator[str]:
        yield finding.message
        if finding.help:
            yield f"Help: {finding.help}"
        if not self._shows_related:
            for each in finding.related:
                yield f"{each.place.path.name}:{each.place.start.row}: {each.message}"
