"""Jupyter notebooks as modules: the code cells in their order, each after a line that marks it.

What IPython runs and Python cannot parse is replaced by a line of Python that keeps the original in a comment, so that
rows and cells can be told from the text alone, and a changed text can be written back. A cell that does not parse
becomes comments in the same way, so that the other cells are linted. Nothing but the source of cells
that changed is written: outputs, metadata and the layout of the file stay as they are.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # it is public, but the stubs lack it
from typing import Any

import msgspec
from msgspec import Struct

_MARK = re.compile(r"# -- cell (?P<number>\d+) of the notebook --")
_KEPT = re.compile(r"\s*(?:pass|[^#]* = get_ipython\(\))  #~ipython~(?P<original>.*)", re.DOTALL)
_ASSIGNED = re.compile(r"(?P<names>[\w.,\s]*\w)\s*=\s*[!%](?!=)")
_UNPARSED = "#~unparsed~"
_SPACE = re.compile(r"[ \t\r\n]*")
# Magics for a whole cell whose body is Python; the body of any other is not.
_PYTHON_MAGICS = frozenset("capture prun time timeit memit mprun snakeviz scalene".split())


class NotebookError(ValueError):
    """A file that is not a notebook; the text is a sentence that says why."""


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""


class _Notebook(msgspec.Struct):
    cells: list[_Cell]
    metadata: Any = None


class Cell(Struct, frozen=True):
    """A position in a notebook: the number of the cell among all cells, and the row in it, both from 1."""

    number: int
    row: int


# -- from the file to a module


def module_of(data: bytes) -> str:
    """The text of the module; empty for a notebook in another language than Python.

    Raises:
        NotebookError: the file is not a notebook of format 4.

    """
    try:
        notebook = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise NotebookError(
            f"It is not a notebook of format 4 ({error}); open and save it in Jupyter, or exclude it."
        ) from None
    except UnicodeDecodeError:
        raise NotebookError("It is not valid UTF-8, as a notebook must be; save it again.") from None
    if _language(notebook.metadata) not in ("python", "ipython"):
        return ""
    return module(
        (number, python_rows(cell.source if isinstance(cell.source, str) else "".join(cell.source)))
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code"
    )


def module(cells: Iterable[tuple[int, Sequence[str]]]) -> str:
    """The text of a module of code cells, each with its number in the notebook and its :func:`python_rows`."""
    rows: list[str] = []
    for number, code in cells:
        rows += (f"# -- cell {number} of the notebook --", *code)
    return "".join(f"{row}\n" for row in rows)


def python_rows(source: str) -> list[str]:
    """The rows of a code cell as the module has them."""
    return _as_comments_if_broken(_as_python(source.split("\n")))


def do_not_parse(rows: Sequence[str]) -> bool:
    """Whether the rows are those of a cell that became comments because it does not parse."""
    return bool(rows) and rows[0].startswith(_UNPARSED)


def _language(metadata: Any) -> str:
    """The language of the kernel; Python if nothing says another."""
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        about = metadata.get(table) if isinstance(metadata, dict) else None
        if isinstance(about, dict) and about.get(key):
            return str(about[key]).lower()
    return "python"


def _as_python(rows: list[str]) -> list[str]:
    """The rows of a cell, with the lines that only IPython understands replaced."""
    first = next((number for number, row in enumerate(rows) if row.strip()), 0)
    magic = re.match(r"%%(\w*)", rows[first].strip())
    if magic is not None:
        if magic[1] not in _PYTHON_MAGICS:
            return [_kept(row) for row in rows]
        return [*map(_kept, rows[: first + 1]), *(_as_python(rows[first + 1 :]) if rows[first + 1 :] else ())]
    if _parses(rows):
        return rows
    found: list[str] = []
    while len(found) < len(rows):
        at = len(found)
        if _is_magic(rows[at]):
            indent = rows[at][: len(rows[at]) - len(rows[at].lstrip())]
            found.append(_kept(rows[at], indent))
            while rows[len(found) - 1].endswith("\\") and len(found) < len(rows):
                found.append(_kept(rows[len(found)], indent))
        else:
            found += rows[at : at + _height(rows[at:])]
    return found


def _as_comments_if_broken(rows: list[str]) -> list[str]:
    """The rows of a cell, as comments if no version of Python understands them."""
    if _parses(rows) or _parses_as_newer(rows):
        return rows
    return [f"{_UNPARSED}{row}" for row in rows]


def _kept(row: str, indent: str = "") -> str:
    assigned = _ASSIGNED.match(row.strip())
    code = f"{assigned['names']} = get_ipython()" if assigned is not None else "pass"
    return f"{indent}{code}  #~ipython~{row}"


def _is_magic(row: str) -> bool:
    text = row.strip()
    return text[:1] in ("%", "!", "?") or (text[-1:] == "?" and "#" not in text) or _ASSIGNED.match(text) is not None


def _parses(rows: Sequence[str]) -> bool:
    try:
        ast.parse("\n".join(rows))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parses_as_newer(rows: Sequence[str]) -> bool:
    """Whether the rows are in the syntax of a newer Python than the running one."""
    import libcst  # which only cells need that this Python cannot parse

    try:
        libcst.parse_module("\n".join(rows))
    except (libcst.ParserSyntaxError, RecursionError):
        return False
    return True


def _height(rows: Sequence[str]) -> int:
    """How many rows the statement at the start of the rows takes, judging by its brackets and strings."""
    import tokenize  # which only cells with magics need

    lines = iter([f"{row}\n" for row in rows])
    try:
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
                return token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass
    return 1


# -- from the module to cells


class Cells:
    """The cells of a module's text."""

    def __init__(self, text: str) -> None:
        self._rows = text.removesuffix("\n").split("\n")
        marks = [(row, found) for row, line in enumerate(self._rows, start=1) if (found := _MARK.fullmatch(line))]
        self._starts = [row for row, _ in marks]
        self._numbers = [int(found["number"]) for _, found in marks]

    def at(self, row: int) -> Cell:
        """The cell that a row of the module belongs to; a mark counts as the first row of its cell."""
        number = max(bisect_right(self._starts, row) - 1, 0)
        if not self._starts:
            return Cell(1, row)
        return Cell(self._numbers[number], max(row - self._starts[number], 1))

    def row_of(self, cell: Cell) -> int | None:
        """The row of the module that a row of a cell has; None if there is no such row."""
        if cell.number not in self._numbers or cell.row < 1:
            return None
        number = self._numbers.index(cell.number)
        row = self._starts[number] + cell.row
        return row if row < (*self._starts, len(self._rows) + 1)[number + 1] else None

    def sources(self) -> Iterator[tuple[int, str]]:
        """The number and the source of each cell, as IPython runs it."""
        for number, (_, rows) in zip(self._numbers, self._all(), strict=True):
            yield number, "\n".join(map(original, rows))

    def unparsed(self) -> Iterator[tuple[int, str]]:
        """The cells that do not parse: the row of the module above them, and the Python that they were taken for."""
        for start, rows in self._all():
            if do_not_parse(rows):
                yield start, "\n".join(row.removeprefix(_UNPARSED) for row in rows)

    def _all(self) -> Iterator[tuple[int, list[str]]]:
        """The row of each mark, and the rows below it."""
        ends = [start - 1 for start in self._starts[1:]] + [len(self._rows)] * bool(self._starts)
        return ((start, self._rows[start:end]) for start, end in zip(self._starts, ends, strict=True))


def original(row: str) -> str:
    """A row as it is in the notebook."""
    row = row.removeprefix(_UNPARSED)
    found = _KEPT.fullmatch(row)
    return row if found is None else found["original"]


# -- back to the file


def rewritten(data: bytes, text: str) -> bytes:
    """The file with the sources of the cells of a module's text; all else keeps its bytes."""
    before = data.decode("utf-8")
    old = dict(Cells(module_of(data)).sources())
    new = dict(Cells(text).sources())
    pieces: list[str] = []
    done = 0
    for number, (start, end) in _spans(before).items():
        if number in new and new[number] != old.get(number):
            pieces += (before[done:start], _written(new[number], before[start:end], before))
            done = end
    return "".join((*pieces, before[done:])).encode("utf-8")


def file_row(data: bytes, cell: Cell) -> int:
    """The row of the file in which a row of a cell is written."""
    text = data.decode("utf-8")
    start, end = _spans(text).get(cell.number, (0, 0))
    source = text[start:end]
    if source.startswith("["):
        items = [at for at, _ in _items(source, 0)]
        start += items[min(cell.row, len(items)) - 1] if items else 0
    return text.count("\n", 0, start) + 1


def _written(source: str, old: str, file: str) -> str:
    """A source as JSON, laid out as the old one is."""
    plain = file.isascii() and "\\u" in file
    if old.startswith('"'):
        return json.dumps(source, ensure_ascii=plain)
    items = [at for at, _ in _items(old, 0)]
    first = old[1 : items[0]] if items else ""
    between = "," + (first or " ") if len(items) < 2 else old[_string_end(old, items[0]) : items[1]]
    after = old[_string_end(old, items[-1]) : -1] if items else ""
    lines = source.splitlines(keepends=True) if "\r" not in source else re.findall(r"[^\n]*\n|[^\n]+", source)
    return f"[{first}{between.join(json.dumps(line, ensure_ascii=plain) for line in lines)}{after}]"


def _spans(text: str) -> dict[int, tuple[int, int]]:
    """Where the source of each cell begins and ends in the file."""
    found: dict[int, tuple[int, int]] = {}
    for key, start, _ in _members(text, _skip(text, 0)):
        if key == "cells":
            for number, (cell, _) in enumerate(_items(text, start), start=1):
                for name, begins, ends in _members(text, cell):
                    if name == "source":
                        found[number] = (begins, ends)
    return found


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """The members of the object at a position: the key, and where the value begins and ends."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1)
        start = _skip(text, _skip(text, at) + 1)
        end = _value_end(text, start)
        yield key, start, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Where the items of the array at a position begin and end."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _value_end(text, at)
        yield at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _value_end(text: str, at: int) -> int:
    end: int = _raw.raw_decode(text, at)[1]
    return end


def _string_end(text: str, at: int) -> int:
    end: int = scanstring(text, at + 1)[1]
    return end


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


_decoder = msgspec.json.Decoder(_Notebook)
_raw: Any = json.JSONDecoder(strict=False)
