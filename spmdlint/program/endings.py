"""Calls that end the process: no code after them runs, and no exception handler stops them."""

from __future__ import annotations

import ast

_NAMES = frozenset(("exit", "quit"))
_FUNCTIONS = frozenset((("sys", "exit"), ("os", "_exit")))


def ends_process(call: ast.Call) -> bool:
    """Whether a call is ``sys.exit(...)``, or one like it, with a literal status.

    A computed status may be that of a script's last line, ``sys.exit(main())``, which no code follows anyway.
    """
    if not _is_named(call.func):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) < 2 and all(isinstance(each, (ast.Constant, ast.JoinedStr, ast.UnaryOp)) for each in given)


def _is_named(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return (function.value.id, function.attr) in _FUNCTIONS
    return isinstance(function, ast.Name) and function.id in _NAMES
