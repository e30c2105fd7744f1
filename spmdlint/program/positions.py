"""Where nodes of a syntax tree stand, as offsets into the text.

Python counts columns in bytes of UTF-8, and takes the parentheses of a tuple or a generator for part of it. A span here
is in characters and lies inside of the parentheses around an expression, whichever expression it is.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from typing import TypeAlias

from spmdlint.program.layout import Span

Parenthesized: TypeAlias = "ast.Tuple | ast.GeneratorExp | ast.MatchSequence"
_PARENTHESIZED = (ast.Tuple, ast.GeneratorExp, ast.MatchSequence)
_NEWLINE = re.compile("\r\n|\r|\n")
# What stands between the parts of an expression: white space, comments, lines that go on.
_SPACE = re.compile(r"(?:[ \t\f\r\n\\]|#[^\r\n]*)*")
_COMMENT = re.compile(r"#[^\r\n]*")


def line_starts(text: str) -> list[int]:
    """Where the rows of a text begin."""
    return [0, *(match.end() for match in _NEWLINE.finditer(text))]


class Positions:
    """The spans of nodes in one text. ``starts``: where rows begin; of what is one row to its tree, the first does."""

    def __init__(self, text: str, starts: list[int], *, bytewise: bool) -> None:
        self.text = text
        # Rows are counted from 1.
        self._starts = [0, *starts]
        # By row, if it holds more than ASCII: its bytes.
        self._wide: dict[int, bytes] = {}
        if bytewise and not text.isascii():
            ends = [*starts[1:], len(text)]
            for row, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
                line = text[start:end]
                if not line.isascii():
                    self._wide[row] = line.encode("utf-8", "surrogatepass")

    def span(self, node: ast.AST) -> Span:
        """Where a node stands, as Python tells it."""
        row, column, last, end = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        if self._wide:
            column, end = self._characters(row, column), self._characters(last, end)
        return self._starts[row] + column, self._starts[last] + end

    def _characters(self, row: int, column: int) -> int:
        line = self._wide.get(row)
        return column if line is None else len(line[:column].decode("utf-8", "surrogatepass"))

    def place(self, offset: int) -> tuple[int, int]:
        """The row from 1 and the column from 0 by which the tree calls an offset."""
        row = bisect_right(self._starts, offset, 1) - 1
        column = offset - self._starts[row]
        line = self._wide.get(row)
        if line is not None:
            column = len(line.decode("utf-8", "surrogatepass")[:column].encode("utf-8", "surrogatepass"))
        return row, column

    # -- parentheses

    def bare(self, node: ast.AST) -> Span:
        """Where a node stands without parentheses, which Python counts with some kinds of nodes."""
        start, end = self.span(node)
        if not isinstance(node, _PARENTHESIZED) or not self.enclosed(node):
            return start, end
        start = self.after_space(start + 1)
        ends = _ends(node)
        return start, start if ends is None else self._last_code(self.span(ends[1])[1], end - 1)

    def enclosed(self, node: Parenthesized) -> bool:
        """Do parentheses of its own stand around a node."""
        start, _ = self.span(node)
        if self.text[start : start + 1] != "(":
            return False
        ends = _ends(node)
        if ends is None:
            return True
        # Those of its first part may be the first thing that stands in it.
        begin, _ = self.span(ends[0])
        opened = _COMMENT.sub("", self.text[start:begin]).count("(")
        return opened > len(self._closers(ends[0]))

    def closed(self, node: ast.AST) -> int:
        """Where a node ends with the parentheses around it, if there are some."""
        return [self.span(node)[1], *self._closers(node)][-1]

    def _closers(self, node: ast.AST) -> list[int]:
        """Where each of the parentheses ends that close behind a node."""
        found = []
        at = self.after_space(self.span(node)[1])
        while self.text[at : at + 1] == ")":
            found.append(at + 1)
            at = self.after_space(at + 1)
        return found

    def after_space(self, offset: int) -> int:
        """The first offset from here on at which code stands."""
        match = _SPACE.match(self.text, offset)
        return offset if match is None else match.end()

    def _last_code(self, start: int, end: int) -> int:
        """Where the code ends that a piece of text between the parts of expressions ends with."""
        found, at = start, self.after_space(start)
        while at < end:
            found = at + 1
            at = self.after_space(found)
        return found


def _ends(node: Parenthesized) -> tuple[ast.AST, ast.AST] | None:
    """The first part and the last of a node, if it has parts."""
    if isinstance(node, ast.GeneratorExp):
        last = node.generators[-1]
        return node.elt, last.ifs[-1] if last.ifs else last.iter
    parts = node.elts if isinstance(node, ast.Tuple) else node.patterns
    return (parts[0], parts[-1]) if parts else None
