"""The positions of syntax tree nodes, as offsets into the text.

Python counts columns in bytes of UTF-8, and includes the parentheses in a tuple or a generator. A span here is in
characters and lies inside the parentheses around an expression, for every kind of expression.
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
# What is between the parts of an expression: white space, comments, line continuations.
_SPACE = re.compile(r"(?:[ \t\f\r\n\\]|#[^\r\n]*)*")
_COMMENT = re.compile(r"#[^\r\n]*")


def line_starts(text: str) -> list[int]:
    """The offsets at which the rows of a text begin."""
    return [0, *(match.end() for match in _NEWLINE.finditer(text))]


class Positions:
    """The spans of nodes in one text. ``starts``: where rows begin; only the first if the tree has one row."""

    def __init__(self, text: str, starts: list[int], *, bytewise: bool) -> None:
        self.text = text
        # Rows are counted from 1.
        self._starts = [0, *starts]
        # The bytes of each row that holds more than ASCII.
        self._wide: dict[int, bytes] = {}
        if bytewise and not text.isascii():
            ends = [*starts[1:], len(text)]
            for row, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
                line = text[start:end]
                if not line.isascii():
                    self._wide[row] = line.encode("utf-8", "surrogatepass")

    def span(self, node: ast.AST) -> Span:
        """The span of a node, as Python gives it."""
        row, column, last, end = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        if self._wide:
            column, end = self._characters(row, column), self._characters(last, end)
        return self._starts[row] + column, self._starts[last] + end

    def _characters(self, row: int, column: int) -> int:
        line = self._wide.get(row)
        return column if line is None else len(line[:column].decode("utf-8", "surrogatepass"))

    def place(self, offset: int) -> tuple[int, int]:
        """The row from 1 and the column from 0 that the tree uses for an offset."""
        row = bisect_right(self._starts, offset, 1) - 1
        column = offset - self._starts[row]
        line = self._wide.get(row)
        if line is not None:
            column = len(line.decode("utf-8", "surrogatepass")[:column].encode("utf-8", "surrogatepass"))
        return row, column

    # -- parentheses

    def bare(self, node: ast.AST) -> Span:
        """The span of a node without parentheses, which Python includes for some kinds of nodes."""
        start, end = self.span(node)
        if not isinstance(node, _PARENTHESIZED) or not self.enclosed(node):
            return start, end
        start = self.after_space(start + 1)
        ends = _ends(node)
        return start, start if ends is None else self._last_code(self.span(ends[1])[1], end - 1)

    def enclosed(self, node: Parenthesized) -> bool:
        """Whether parentheses that belong to a node are around it."""
        start, _ = self.span(node)
        if self.text[start : start + 1] != "(":
            return False
        ends = _ends(node)
        if ends is None:
            return True
        # An opening parenthesis may be that of its first part.
        begin, _ = self.span(ends[0])
        opened = _COMMENT.sub("", self.text[start:begin]).count("(")
        return opened > len(self._closers(ends[0]))

    def closed(self, node: ast.AST) -> int:
        """The end of a node, including any parentheses around it."""
        return [self.span(node)[1], *self._closers(node)][-1]

    def _closers(self, node: ast.AST) -> list[int]:
        """The ends of the parentheses that close after a node."""
        found = []
        at = self.after_space(self.span(node)[1])
        while self.text[at : at + 1] == ")":
            found.append(at + 1)
            at = self.after_space(at + 1)
        return found

    def after_space(self, offset: int) -> int:
        """The first offset from here on at which there is code."""
        match = _SPACE.match(self.text, offset)
        return offset if match is None else match.end()

    def _last_code(self, start: int, end: int) -> int:
        """The end of the last code in a piece of text between the parts of expressions."""
        found, at = start, self.after_space(start)
        while at < end:
            found = at + 1
            at = self.after_space(found)
        return found


def _ends(node: Parenthesized) -> tuple[ast.AST, ast.AST] | None:
    """The first and the last part of a node, if it has parts."""
    if isinstance(node, ast.GeneratorExp):
        last = node.generators[-1]
        return node.elt, last.ifs[-1] if last.ifs else last.iter
    parts = node.elts if isinstance(node, ast.Tuple) else node.patterns
    return (parts[0], parts[-1]) if parts else None
