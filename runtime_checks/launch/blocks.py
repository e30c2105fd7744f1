"""Which lines of a source file belong together: those of one statement, and those of one function."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Blocks:
    """The spans of a file, first and last line each; none if it cannot be read or parsed."""

    statements: list[tuple[int, int]] = field(default_factory=list)
    functions: list[tuple[int, int]] = field(default_factory=list)

    def same_statement(self, one: int, other: int) -> bool:
        """Whether two lines are in one statement: Python and the linter may name different lines of a long call."""
        return one == other or any(first <= one <= last and first <= other <= last for first, last in self.statements)

    def function(self, line: int) -> tuple[int, int] | None:
        """The innermost function around a line; None for a module's own lines."""
        around = [span for span in self.functions if span[0] <= line <= span[1]]
        return min(around, key=lambda span: span[1] - span[0], default=None)


def blocks_of(filename: str) -> Blocks:
    """The spans of a file."""
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return Blocks()
    found = Blocks()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.stmt) and not hasattr(node, "body") and not isinstance(node, ast.Match):
            found.statements.append((node.lineno, node.end_lineno or node.lineno))
    return found
