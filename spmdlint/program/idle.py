"""Code that has no effect until it is named: plain functions, constants, imported standard-library modules.

An *idle* statement at the top level of a file calls nothing and sets nothing visible, and the rest of its file does not
name it. As long as no other file does, a program means the same with it and without it. Inside functions, a constant
that is assigned to an otherwise unused name is idle without regard to other files.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import sys

from spmdlint.files.screen import imports_all
from spmdlint.program.positions import Positions
from spmdlint.program.summary import Idle
from spmdlint.program.syntax import SUITES

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SUITES = SUITES | dict.fromkeys((*_FUNCTIONS, ast.ClassDef), ("body",))
_LITERAL = (
    ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
_PLAIN = (
    *_LITERAL, ast.arguments, ast.arg, ast.keyword, ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop, ast.IfExp, ast.Set,
    ast.Subscript, ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.comprehension, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For,
    ast.While, ast.If, ast.Return, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Assert, ast.Raise,
)  # fmt: skip
_MOST = 2000
"""The most statements in a file in which idle code is looked for: a generated file may have many more."""
# Words in names of functions and parameters by which rules take something for a process's own, or for split over
# processes.
_TELLING_WORDS = tuple("local host shard rank process device mesh seed rng key barrier save".split())
# Importing one of these says something about the file: how it is parsed, what its `.get()` or `.done()` is called on,
# and whether a fix may use it.
_TELLING = frozenset(("__future__", "asyncio", "concurrent", "functools", "multiprocessing", "queue", "threading"))
# Rebinding one of Python's built-in names affects all code of a file.
_BUILTIN = frozenset(vars(builtins))
_HARMLESS = frozenset(
    """abs all any bool bytes chr complex dict divmod enumerate float format frozenset int isinstance len list max min
    object ord pow range repr reversed round set slice sorted str sum tuple type zip""".split()
) | frozenset(name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, Exception))


def leave_out(tree: ast.Module, positions: Positions) -> tuple[Idle, ...] | None:
    """Remove idle code from a tree, and return the part of it that other files might name; None if there was none."""
    text = positions.text
    if imports_all(text) or len(tree.body) > _MOST:
        return None  # the names of this file are unknown, or too many to look for each
    found: list[Idle] = []
    kept: list[ast.stmt] = []
    changed = False
    bound: frozenset[str] | None = None
    for statement in tree.body:
        names = _defined(statement)
        idle = bool(names) and not any(name in _BUILTIN for name, _ in names) and _is_plain(statement)
        start, end = positions.span(statement) if idle else (0, 0)
        idle = idle and not any(_stands(name, text, start, end) for name, _ in names)
        if idle and isinstance(statement, ast.FunctionDef):
            bound = _names_bound(tree) if bound is None else bound
            idle = (_names(statement) - _names_bound(statement)).isdisjoint(bound)
        if idle:
            digest = hashlib.sha256(text[start:end].encode("utf-8", "surrogatepass")).digest()
            found += [Idle(name, digest, module) for name, module in names]
        else:
            kept.append(statement)
            changed |= _without_constants(statement, text)
    if found:
        tree.body = kept
    return tuple(found) if changed or found else None


def _stands(name: str, text: str, start: int, end: int) -> bool:
    """Whether a text contains a name, or a word with it, outside a part of the text."""
    return text.find(name, end) >= 0 or text.find(name, 0, start) >= 0


def _defined(statement: ast.stmt) -> list[tuple[str, str]]:
    """The names that a statement binds, with the modules they are imported from, if its kind can be idle."""
    if isinstance(statement, ast.FunctionDef):
        return [] if statement.decorator_list or _is_special(statement.name) else [(statement.name, "")]
    if isinstance(statement, ast.Import):
        return _of_python([(name.asname or name.name.partition(".")[0], name.name) for name in statement.names])
    if isinstance(statement, ast.ImportFrom):
        if statement.level or statement.module is None:
            return []
        return _of_python([(name.asname or name.name, statement.module) for name in statement.names])
    name = _target(statement)
    return [] if name is None or _is_special(name) else [(name, "")]


def _of_python(names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Imported names, if all of them come from the standard library."""
    roots = [(name, module.partition(".")[0]) for name, module in names]
    return roots if all(root in sys.stdlib_module_names - _TELLING for _, root in roots) else []


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _target(statement: ast.stmt) -> str | None:
    """The single name that a statement assigns a literal to, at first sight."""
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.value, _LITERAL)
    ):
        return None
    target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def _without_constants(statement: ast.stmt, text: str) -> bool:
    """Remove constants from the functions in a statement that are assigned to names that nobody reads."""
    changed = False
    pending: list[tuple[ast.AST, bool]] = [(statement, False)]
    while pending:
        node, inside = pending.pop()
        kind = type(node)
        inside = kind in _FUNCTIONS or (inside and kind is not ast.ClassDef)
        for field in _SUITES.get(kind, ()):
            body: list[ast.AST] = getattr(node, field)
            left = [each for each in body if not (inside and isinstance(each, ast.Assign) and _unread(each, text))]
            if left and len(left) < len(body):
                setattr(node, field, left)
                changed = True
            pending += [(each, inside) for each in left if type(each) in _SUITES]
    return changed


def _unread(statement: ast.Assign, text: str) -> bool:
    """Whether the name that a literal is assigned to occurs nowhere else in the file, not even inside another word."""
    name = _target(statement)
    if name is None or name in _BUILTIN:
        return False
    start = text.find(name)  # it may be part of another word: then the name itself comes after it
    return start >= 0 and not _stands(name, text, start, start + len(name)) and _is_plain(statement)


def _is_plain(statement: ast.stmt) -> bool:
    """Whether a statement imports, assigns a literal, or defines a function that queries nothing of its arguments."""
    if isinstance(statement, ast.FunctionDef):
        return _keeps_to_itself(statement)
    return not isinstance(statement, ast.Assign) or all(isinstance(n, _LITERAL) for n in ast.walk(statement.value))


def _keeps_to_itself(function: ast.FunctionDef) -> bool:
    """Whether a function works with its own names alone, with Python's functions, and methods of literals."""
    own = _names_bound(function)
    if any(word in name.lower() for name in own for word in _TELLING_WORDS):
        return False
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            plain = node.id in own or node.id in _HARMLESS
        elif isinstance(node, ast.Call):
            # A method is examined as an attribute, later in the walk.
            called = node.func
            plain = called.id not in own if isinstance(called, ast.Name) else isinstance(called, ast.Attribute)
        elif isinstance(node, ast.Attribute):
            plain = isinstance(node.value, (ast.Constant, ast.JoinedStr))
        else:
            plain = node is function or isinstance(node, _PLAIN)
        if not plain:
            return False
    return True


def _names(tree: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _names_bound(tree: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return frozenset(found)
