"""From text to a syntax tree with positions: by Python's own parser, or by LibCST's for newer syntax.

LibCST reads the syntax of every version, whichever Python runs, but takes seven times as long and keeps all white
space; its tree is converted to the classes of Python's tree, so that code is lowered in one way.
"""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from spmdlint.interpreter import deep, unwarned
from spmdlint.program.positions import Positions, line_starts
from spmdlint.program.strings import comments

if TYPE_CHECKING:
    import libcst as cst

_WIDE_WORD = re.compile(r"\w*[^\W\x00-\x7f]\w*")
"""A word that is not pure ASCII."""

_TRIED = ("body", "handlers", "orelse", "finalbody")
# The statements that hold other statements of the same scope.
SUITES: dict[type[ast.AST], tuple[str, ...]] = {
    ast.If: ("body", "orelse"),
    ast.For: ("body", "orelse"),
    ast.AsyncFor: ("body", "orelse"),
    ast.While: ("body", "orelse"),
    ast.Try: _TRIED,
    ast.ExceptHandler: ("body",),
    ast.With: ("body",),
    ast.AsyncWith: ("body",),
    ast.Match: ("cases",),
    ast.match_case: ("body",),
}
if sys.version_info >= (3, 11):
    SUITES[ast.TryStar] = _TRIED


class LoweringError(Exception):
    """The text is not Python that can be linted; row and column from 1."""

    def __init__(self, row: int, column: int, message: str) -> None:
        super().__init__(row, column, message)
        self.row = row
        self.column = column
        self.message = message


class Syntax(Struct, frozen=True):
    """The syntax of one text: its tree, the positions of the nodes, and the comments with their offsets."""

    tree: ast.Module
    positions: Positions
    line_starts: list[int]
    comments: Callable[[], Iterable[tuple[int, str]]]


def parse(text: str) -> Syntax:
    """The syntax of a text.

    Raises:
        LoweringError: it does not parse, or is nested too deeply.

    """
    try:
        tree = _tree(text)
    except (RecursionError, MemoryError):
        # Python itself can neither compile nor import it, and LibCST takes minutes, or the whole stack.
        raise too_deep() from None
    if tree is None or _reads_otherwise(text):
        return parse_newer(text)
    starts = line_starts(text)
    return Syntax(tree, Positions(text, starts, bytewise=True), starts, lambda: comments(text))


def python_tree(text: str) -> ast.Module | None:
    """The tree of a text in the syntax of this Python; None if it does not parse, or is nested too deeply for it."""
    try:
        return _tree(text)
    except (RecursionError, MemoryError):
        return None


def _tree(text: str) -> ast.Module | None:
    with unwarned():
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            return None


_STOPPED = re.compile(r"error at (\d+):(\d+)")


def parse_newer(text: str) -> Syntax:
    """The syntax of a text, whatever version of Python it is for.

    Raises:
        LoweringError: it does not parse, or is nested too deeply.

    """
    import libcst as cst  # a tenth of a second that few runs need

    from spmdlint.files.nesting import too_many_brackets
    from spmdlint.program.newer import converted

    # Python itself rejects this depth.
    if (place := too_many_brackets(text)) is not None:
        raise LoweringError(*place, "too many brackets are nested inside each other here")
    with deep():
        try:
            tree, found = converted(cst.parse_module(text))
        except cst.ParserSyntaxError as error:
            raise _as_python_says(text) or _as_libcst_says(error) from None
        except RecursionError:
            raise too_deep() from None
    return Syntax(tree, Positions(text, [0], bytewise=False), line_starts(text), lambda: found)


def _as_python_says(text: str) -> LoweringError | None:
    """What is wrong with a text, in the words of this Python, which are better; None if it finds nothing wrong."""
    with unwarned():
        try:
            ast.parse(text)
        except SyntaxError as error:
            if error.lineno is not None:
                return LoweringError(error.lineno, max(error.offset or 1, 1), error.msg)
        except (ValueError, RecursionError, MemoryError):
            return None
    return None


def _as_libcst_says(error: cst.ParserSyntaxError) -> LoweringError:
    # The error carries a position and gives another in its text; one that comes after the fault is a row late.
    told = _STOPPED.search(error.message)
    places = [(int(told[1]), int(told[2]))] if told is not None else []
    row, column = min([(error.raw_line, error.raw_column), *places])
    return LoweringError(row, column + 1, error.message)


def too_deep() -> LoweringError:
    """The error for a text that recursion cannot process completely."""
    return LoweringError(1, 1, "it is nested too deeply")


def _reads_otherwise(text: str) -> bool:
    """Whether Python sees a different text: it drops a byte order mark, and normalizes names."""
    if text.isascii():
        return False
    names = " ".join(word for word in _WIDE_WORD.findall(text) if word.isidentifier())
    return text.startswith("\ufeff") or not unicodedata.is_normalized("NFKC", names)
