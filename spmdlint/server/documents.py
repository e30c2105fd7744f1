"""The documents that are open in the editor: their texts, which count instead of those on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from spmdlint.diagnostics import Edit
from spmdlint.fixes.rounds import exact
from spmdlint.server.moves import Moves, Rows
from spmdlint.server.query import Document


class Text(Struct, frozen=True):
    """A text of the editor, under the editor's name for it and with the editor's number of its version.

    Its rows, which have their ends, begin at row ``first`` of the document.
    """

    uri: str
    version: int
    rows: Sequence[str]
    first: int = 1


class OpenDocument:
    """One open document. ``uri`` is its name as the editor spells it, ``version`` the editor's number of its text."""

    def __init__(self, path: Path, uri: str, text: str, version: int) -> None:
        self.path = path
        self.uri = uri
        self.version = version
        self.text = text
        """The text in the editor, as the linter reads it."""
        self.saved = True
        """Whether the editor has changed it since it read or wrote the file."""
        self._examined = text
        self._unparsed = text
        self._parsed: str | None = None
        self._moves: tuple[Moves, Moves] | None = None
        self._texts: Sequence[Text] = ()

    def change(self, text: str, version: int) -> None:
        """Take the editor's new text."""
        self.version = version
        self.saved = False
        self.text = text
        self._moves = None
        self._texts = ()

    @property
    def typed(self) -> str:
        """The text as the user sees it, with the same rows."""
        return self.text

    @property
    def texts(self) -> Sequence[Text]:
        """The texts of the editor that the document consists of, in their order; at least one."""
        self._texts = self._texts or self._divided()
        return self._texts

    def text_at(self, row: int) -> Text:
        """The text of the editor that a row is in."""
        return next((text for text in reversed(self.texts) if text.first <= row), self.texts[0])

    def text_named(self, uri: str) -> Text:
        """A text of the editor by its name; the first one, if it has another name for that."""
        return next((text for text in self.texts if text.uri == uri), self.texts[0])

    def edits(self, typed: str) -> Iterator[tuple[Text, Iterator[Edit]]]:
        """What turns the texts of the editor into those of a changed document."""
        yield self.texts[0], Moves(self.text, typed).edits()

    def parses(self, typed: str) -> bool:
        """Whether a changed document parses."""
        return exact(typed)

    def parses_at(self, row: int) -> bool:
        """Whether the part of the document that a row is in has a chance to parse."""
        return True

    def snapshot(self) -> Document:
        """The document as a question about the project mentions it."""
        return Document(self.path, self.text, self._parsed, self.saved, self._examined)

    def examined(self, document: Document, *, broken: bool) -> None:
        """Remember the text that the findings are about now. ``broken``: the document does not parse."""
        if not broken:
            self._parsed = document.text
        self._unparsed = document.text
        self._examined = document.text if self._parsed is None else self._parsed
        self._moves = None

    def _divided(self) -> Sequence[Text]:
        return [Text(self.uri, self.version, Rows(self.text).all)]

    def moves(self, *, unparsed: bool = False) -> Moves:
        """From the text that the findings are about to the one in the editor.

        With ``unparsed``, from the text that does not parse, which the trouble with it is about.
        """
        if self._moves is None:
            self._moves = (Moves(self._examined, self.typed), Moves(self._unparsed, self.typed))
        return self._moves[unparsed]


def sound(text: str) -> str:
    """A text without halves of surrogate pairs, which no encoding has."""
    return text.encode("utf-8", "replace").decode("utf-8")
