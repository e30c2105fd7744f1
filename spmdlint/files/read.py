"""Decodes a file's bytes to its text, as Python itself does."""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path

from msgspec import Struct

_NEWLINE = re.compile("\r\n|\r|\n")


NOTEBOOK = ".ipynb"


class Source(Struct, frozen=True):
    """A file's text without a byte order mark; line ends are unchanged."""

    path: Path
    text: str

    def lines(self) -> list[str]:
        """The rows without their ends, split where Python splits them (``str.splitlines`` knows more line ends)."""
        return split_rows(self.text)


class Unreadable(Struct, frozen=True):
    """A file without a text, and why."""

    path: Path
    row: int
    column: int
    message: str


def split_rows(text: str) -> list[str]:
    """The rows of a text, counted as Python counts them."""
    return _NEWLINE.split(text)


def is_notebook(path: Path) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.suffix == NOTEBOOK


def read(path: Path) -> Source | Unreadable:
    """Read one file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Unreadable(path, 1, 1, "It was removed while the linter ran; run the linter again.")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Unreadable(path, 1, 1, f"It cannot be opened ({reason}); make it readable, or exclude it.")
    return decode(path, data)


def decode(path: Path, data: bytes) -> Source | Unreadable:
    """Decode a file's bytes, honouring a byte order mark and a coding comment; a notebook becomes a module."""
    if is_notebook(path):
        return _decode_notebook(path, data)
    if not data.startswith(codecs.BOM_UTF8) and b"coding" not in b"\n".join(data.split(b"\n", 2)[:2]):
        try:
            return Source(path, data.decode("utf-8"))
        except UnicodeDecodeError:
            pass  # the longer way finds the position
    import tokenize  # which few files need

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        return Unreadable(path, *_undecodable(data), f"{_sentence(error)} Fix the encoding or the coding comment.")
    try:
        return Source(path, data.decode(encoding))
    except UnicodeDecodeError as error:
        before = split_rows(data[: error.start].decode(encoding, errors="replace"))
        return Unreadable(
            path,
            len(before),
            len(before[-1]) + 1,
            f"It is not valid {encoding}; save it as UTF-8, or declare its encoding in a coding comment.",
        )
    except (UnicodeError, LookupError, ValueError) as error:
        # Codecs that are not text encodings (rot13, zlib) and broken ones (idna) raise different errors.
        return Unreadable(path, 1, 1, f"It does not decode as {encoding} ({error}); fix its coding comment.")


def _decode_notebook(path: Path, data: bytes) -> Source | Unreadable:
    from spmdlint.files.notebooks import NotebookError, module_of

    try:
        return Source(path, module_of(data))
    except NotebookError as error:
        return Unreadable(path, 1, 1, str(error))


def _undecodable(data: bytes) -> tuple[int, int]:
    """Where the first two rows stop being UTF-8; ``detect_encoding`` reads only these and does not say."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = split_rows(data[: error.start].decode("utf-8", errors="replace"))
        return len(before), len(before[-1]) + 1
    return 1, 1


def _sentence(error: SyntaxError) -> str:
    text = str(error.msg).strip()
    return f"{text[:1].upper()}{text[1:]}."
