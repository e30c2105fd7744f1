"""Writes a file's new text with its old encoding, byte order mark and line ends."""

from __future__ import annotations

import io
from pathlib import Path

from spmdlint.errors import UsageError
from spmdlint.files.read import is_notebook


def encoded(path: Path, data: bytes, text: str) -> bytes:
    """``text`` in the encoding of the file that contains ``data``; the text of a notebook's module in the notebook."""
    if is_notebook(path):
        from spmdlint.files.notebooks import rewritten

        return rewritten(data, text)
    import tokenize  # which a run that writes nothing does not need

    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return text.encode(encoding)


def rewrite(path: Path, text: str) -> None:
    """Write the new text of a file that was read.

    Raises:
        UsageError: the file cannot be written.

    """
    try:
        path.write_bytes(written(path, path.read_bytes(), text))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None


def written(path: Path, data: bytes, text: str) -> bytes:
    """What ``rewrite`` would write.

    Raises:
        UsageError: the encoding of the file lacks a character of the text.

    """
    try:
        return encoded(path, data, text)
    except (UnicodeError, SyntaxError):
        raise UsageError(f"{path} cannot be written: its encoding lacks a character; save it as UTF-8.") from None


def line_end(text: str) -> str:
    """The line end of a text, judging by its first one."""
    at = text.find("\n")
    if at < 0:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if text[at - 1 : at] == "\r" else "\n"
