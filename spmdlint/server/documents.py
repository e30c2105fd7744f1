"""The documents that are open in the editor: their texts, which count instead of those on disk."""

from __future__ import annotations

from pathlib import Path

from spmdlint.server.moves import Moves, Rows
from spmdlint.server.query import Document


class OpenDocument:
    """One open document. ``uri`` is its name as the editor spells it, ``version`` the editor's number of its text."""

    def __init__(self, path: Path, uri: str, text: str, version: int) -> None:
        self.path = path
        self.uri = uri
        self.version = version
        self.saved = True
        """Whether the editor has changed it since it read or wrote the file."""
        self.rows = Rows(text)
        self._examined = text
        self._unparsed = text
        self._parsed: str | None = None
        self._moves: tuple[Moves, Moves] | None = None

    @property
    def text(self) -> str:
        """The text in the editor."""
        return self.rows.text

    def change(self, text: str, version: int) -> None:
        """Take the editor's new text."""
        self.version = version
        self.saved = False
        self.rows = Rows(text)
        self._moves = None

    def snapshot(self) -> Document:
        """The document as a question about the project mentions it."""
        return Document(self.path, self.text, self._parsed, self.saved)

    def examined(self, document: Document, *, broken: bool) -> None:
        """Remember the text that the findings are about now. ``broken``: the document does not parse."""
        if not broken:
            self._parsed = document.text
        self._unparsed = document.text
        self._examined = document.text if self._parsed is None else self._parsed
        self._moves = None

    def moves(self, *, unparsed: bool = False) -> Moves:
        """From the text that the findings are about to the one in the editor.

        With ``unparsed``, from the text that does not parse, which the trouble with it is about.
        """
        if self._moves is None:
            self._moves = (Moves(self._examined, self.text), Moves(self._unparsed, self.text))
        return self._moves[unparsed]
