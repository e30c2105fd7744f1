"""Makes the edits of fixes that are changes of a syntax tree, when they are needed.

Importing LibCST takes as long as linting a small file. A function around an expression is two insertions, for which no
tree is needed, unless the expression shares its parentheses or its white space with what is around it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spmdlint.changes import Wrap
from spmdlint.diagnostics import Diagnostic, Edit, Fix, Location
from spmdlint.files.read import Source, split_rows
from spmdlint.interpreter import unwarned

if TYPE_CHECKING:
    from spmdlint.fixes.transformations import Transformer


class EditMaker:
    """Makes the edits of fixes in one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._transformer: Transformer | None = None

    def made(self, fix: Fix) -> Fix | None:
        """The fix with its edits; None if the text has no such expression, or LibCST cannot parse it exactly."""
        if fix.change is None:
            return fix
        edits = self._inserted(fix.change) if isinstance(fix.change, Wrap) else ()
        if not edits:
            if self._transformer is None:
                from spmdlint.fixes.transformations import Transformer

                self._transformer = Transformer(self._text)
            edits = self._transformer.edits(fix.change)
        return replace(fix, edits=edits, change=None) if edits else None

    def _inserted(self, change: Wrap) -> tuple[Edit, ...]:
        """The two insertions around an expression in one row; none if they may not mean the same as the call."""
        (row, column), (last, end) = change.start, change.end
        rows = split_rows(self._text)
        if row != last or row > len(rows) or not 0 < column < end <= len(rows[row - 1]) + 1:
            return ()
        code, before = rows[row - 1][column - 1 : end - 1], rows[row - 1][: column - 1][-1:]
        if before == "_" or before.isalnum() or not _stands_alone(code):
            return ()
        start, stop = Location(row, column), Location(row, end)
        return Edit(start, start, f"{change.function}("), Edit(stop, stop, ")")


def with_edits(findings: Iterable[Diagnostic], sources: Mapping[Path, Source]) -> Iterator[Diagnostic]:
    """The findings, with the edits of all fixes; without a fix whose edits cannot be made."""
    makers: dict[Path, EditMaker] = {}
    for finding in findings:
        path = finding.place.path
        if finding.fix is None or finding.fix.change is None:
            yield finding
        elif path not in sources:
            yield replace(finding, fix=None)
        else:
            if path not in makers:
                makers[path] = EditMaker(sources[path].text)
            yield replace(finding, fix=makers[path].made(finding.fix))


def _stands_alone(code: str) -> bool:
    """Whether code is an expression that needs no parentheses as an argument."""
    try:
        with unwarned():
            tree = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not isinstance(tree, (ast.Tuple, ast.Yield, ast.YieldFrom, ast.NamedExpr))
