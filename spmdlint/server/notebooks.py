"""The notebooks that are open in the editor, for which each cell is a text with a name of its own.

The linter reads the cells as one module, whose rows are what findings count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from spmdlint.diagnostics import Edit
from spmdlint.files.notebooks import Cells, do_not_parse, module, original, python_rows
from spmdlint.fixes.rounds import exact
from spmdlint.server.documents import OpenDocument, Text, sound
from spmdlint.server.moves import Moves, Rows
from spmdlint.server.query import Document
from spmdlint.server.translation import changed

SELECTED = types.NotebookDocumentFilterWithNotebook(
    types.NotebookDocumentFilterNotebookType("jupyter-notebook", scheme="file")
)
"""The notebooks that editors tell of, with all cells: so a cell has the number that it has in the file."""


class OpenCell:
    """One cell of an open notebook. Markdown, and what the editor takes for another language, is not ``python``."""

    def __init__(self, uri: str, source: str, version: int, *, python: bool) -> None:
        self.uri = uri
        self.python = python
        self.standing_in: Sequence[str] = ()
        """The rows of the module; while they do not parse, the last ones that did."""
        self.change(source, version)

    def change(self, source: str, version: int) -> None:
        """Take the editor's new text."""
        self.source = source
        self.version = version
        self.rows = python_rows(source) if self.python else []
        if not do_not_parse(self.rows) or not self.standing_in or do_not_parse(self.standing_in):
            self.standing_in = self.rows


class OpenNotebook(OpenDocument):
    """An open notebook. While a cell does not parse, its last source that did stands in for it."""

    def __init__(self, path: Path, uri: str, cells: Sequence[OpenCell], version: int) -> None:
        self.cells = list(cells)
        super().__init__(path, uri, self._module(), version)

    def take(self, change: types.NotebookDocumentCellChanges, version: int, codec: PositionCodec) -> None:
        """Take the editor's new cells, and new texts of them."""
        if change.structure is not None:
            self._rearrange(change.structure)
        by_uri = {cell.uri: cell for cell in self.cells}
        for content in change.text_content or ():
            cell = by_uri.get(content.document.uri)
            if cell is not None:
                source = cell.source
                for edit in content.changes:
                    source = changed(source, edit, codec)
                cell.change(sound(source), content.document.version)
        self.change(self._module(), version)

    def _rearrange(self, structure: types.NotebookDocumentCellChangeStructure) -> None:
        """Remove, insert and move cells, and take what the editor opened anew, such as a cell in another language."""
        opened = {text.uri: text for text in structure.did_open or ()}
        before = {cell.uri: cell for cell in self.cells}
        array = structure.array
        self.cells[array.start : array.start + array.delete_count] = [
            before[cell.document]
            if cell.document in before and cell.document not in opened
            else open_cell(cell, opened.get(cell.document))
            for cell in array.cells or ()
        ]

    @property
    def typed(self) -> str:
        return _typed(self.text)

    def _divided(self) -> Sequence[Text]:
        found: list[Text] = []
        row = 1
        for cell in self.cells:
            if cell.python:
                rows = Rows(cell.source).all
                found.append(Text(cell.uri, cell.version, rows, row + 1))
                row += 1 + len(rows)
        return found or [Text(self.uri, self.version, [""])]

    def edits(self, typed: str) -> Iterator[tuple[Text, Iterator[Edit]]]:
        for text, (_, source) in zip(self.texts, Cells(typed).sources(), strict=False):
            before = "".join(text.rows)
            if source != before:
                yield text, Moves(before, source).edits()

    def parses(self, typed: str) -> bool:
        return exact(module((number, python_rows(source)) for number, source in Cells(typed).sources()))

    def parses_at(self, row: int) -> bool:
        return not do_not_parse(self.cells[Cells(self.text).at(row).number - 1].rows)

    def snapshot(self) -> Document:
        return Document(self.path, self.text, self._module(standing_in=True), self.saved)

    def examined(self, document: Document, *, broken: bool) -> None:
        self._unparsed = _typed(document.text)
        self._examined = self._unparsed if document.parsed is None else _typed(document.parsed)
        self._moves = None

    def _module(self, *, standing_in: bool = False) -> str:
        return module(
            (number, cell.standing_in if standing_in else cell.rows)
            for number, cell in enumerate(self.cells, start=1)
            if cell.python
        )


def _typed(text: str) -> str:
    """The text of a notebook's module with the rows as the user sees them."""
    return "\n".join(map(original, text.split("\n")))


def open_cell(cell: types.NotebookCell, text: types.TextDocumentItem | None) -> OpenCell:
    """A cell as the editor tells of it."""
    if text is None:
        return OpenCell(cell.document, "", 0, python=False)
    python = cell.kind == types.NotebookCellKind.Code and text.language_id == "python"
    return OpenCell(cell.document, sound(text.text), text.version, python=python)
