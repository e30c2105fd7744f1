"""Converts calls that make named tuples into the equivalent classes: ``Batch = namedtuple("Batch", "rows labels")``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MAKERS = frozenset(("namedtuple", "NamedTuple"))


def made_by(node: ast.Assign) -> ast.ClassDef | None:
    """The class that an assignment makes and names; None if it makes none, or its fields are not literals."""
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Name) or not isinstance(node.value, ast.Call):
        return None
    body = _body(node.value)
    return _class(target.id, [node.value.func], body, node) if body is not None else None


def derived_from(node: ast.ClassDef) -> ast.ClassDef:
    """The class itself, or with the fields of a named tuple call among its bases added to it."""
    bases: list[ast.expr] = []
    fields: list[ast.stmt] = []
    for base in node.bases:
        body = _body(base) if isinstance(base, ast.Call) else None
        bases.append(base.func if isinstance(base, ast.Call) and body is not None else base)
        fields += body or []
    if not fields:
        return node
    found = _class(node.name, bases, [*fields, *node.body], node)
    found.keywords, found.decorator_list = node.keywords, node.decorator_list
    return found


def _class(name: str, bases: list[ast.expr], body: list[ast.stmt], at: ast.AST) -> ast.ClassDef:
    made = ast.ClassDef(name=name, bases=bases, keywords=[], body=body, decorator_list=[])
    return ast.copy_location(made, at)


def _body(call: ast.Call) -> list[ast.stmt] | None:
    """The fields as annotated names, with their defaults; None for other calls, or if anything else is computed."""
    maker = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if maker not in _MAKERS or len(call.args) != 2 or any(k.arg not in ("defaults", "module") for k in call.keywords):
        return None
    fields = list(_fields(call.args[1]))
    defaults: list[ast.expr] = []
    for keyword in call.keywords:
        if keyword.arg == "defaults":
            if not isinstance(keyword.value, (ast.Tuple, ast.List)):
                return None
            defaults = keyword.value.elts
    if not fields or any(name is None for name, _, _ in fields) or len(defaults) > len(fields):
        return None
    values = [*[None] * (len(fields) - len(defaults)), *defaults]
    return [_declared(name or "", kind, at, value) for (name, kind, at), value in zip(fields, values, strict=True)]


def _fields(written: ast.expr) -> Iterator[tuple[str | None, ast.expr | None, ast.expr]]:
    """Each field's name, its type if there is one, and its position; None for a name that is not a literal."""
    text = _text(written)
    if text is not None:
        for name in text.replace(",", " ").split():
            yield _name(name), None, written
        return
    for each in written.elts if isinstance(written, (ast.List, ast.Tuple)) else ():
        if isinstance(each, ast.Tuple) and len(each.elts) == 2:
            yield _name(_text(each.elts[0])), each.elts[1], each.elts[0]
        else:
            yield _name(_text(each)), None, each


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _name(text: str | None) -> str | None:
    return text if text is not None and text.isidentifier() else None


def _declared(name: str, kind: ast.expr | None, at: ast.expr, default: ast.expr | None) -> ast.AnnAssign:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    annotation = kind or ast.copy_location(ast.Constant(None), at)
    return ast.copy_location(ast.AnnAssign(target, annotation, default, 1), at)
