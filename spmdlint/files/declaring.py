"""Where ``# spmdlint: uniform`` can have an effect: at a statement that stores a value, and at a ``def``.

Where it certainly has none, somebody believes in a declaration that nobody reads. ``program/uniform.py`` says what a
declaration means.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

DECLARES = re.compile(r"#\s*spmdlint:\s*uniform\b")
_NESTED = (ast.stmt, ast.excepthandler, ast.match_case)
_NAMED = (ast.MatchAs, ast.MatchStar, ast.MatchMapping)


def storing_rows(text: str) -> frozenset[int] | None:
    """The rows of what may store a value, without the bodies of compound statements; None if this Python cannot say."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return frozenset(row for node in ast.walk(tree) if _stores(node) for row in _rows(node))


def _stores(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.ExceptHandler):
        return node.name is not None
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return False
    if not isinstance(node, (ast.stmt, ast.match_case)):
        return False
    inside = (
        each for child in ast.iter_child_nodes(node) if not isinstance(child, _NESTED) for each in ast.walk(child)
    )
    return any(_binds(each) for each in inside)


def _binds(node: ast.AST) -> bool:
    return isinstance(node, _NAMED) or (isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store))


def _rows(node: ast.AST) -> Iterator[int]:
    """The rows of a simple statement, or of the head of a compound one, with the docstring below."""
    first: int = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno  # type: ignore[attr-defined]
    body: list[ast.stmt] = getattr(node, "body", [])
    if not body:
        yield from range(first, getattr(node, "end_lineno", first) + 1)
        return
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    last = (body[0].end_lineno or first) if documented else _first_row(body[0]) - 1
    yield from range(first, max(first, last) + 1)


def _first_row(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])
