"""Calls that end the process: nothing that stands behind them runs, and no handler of errors stops them."""

from __future__ import annotations

import ast

_NAMES = frozenset(("exit", "quit"))
_FUNCTIONS = frozenset((("sys", "exit"), ("os", "_exit")))


def ends_process(call: ast.Call) -> bool:
    """Is a call ``sys.exit(...)``, or one like it, with a status that is written there.

    What is computed may be that of the last line of a script, ``sys.exit(main())``, behind which nothing stands anyway.
    """
    if not _is_named(call.func):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) < 2 and all(isinstance(each, (ast.Constant, ast.JoinedStr, ast.UnaryOp)) for each in given)


def _is_named(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _NAMES
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return (function.value.id, function.attr) in _FUNCTIONS
    return False
