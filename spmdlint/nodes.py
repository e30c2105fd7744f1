"""From a node of LibCST's tree to the facts about it."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from spmdlint.analysis.nodefacts import FileFacts, NodeKind
from spmdlint.facts import Facts
from spmdlint.program.layout import Span
from spmdlint.program.spans import span_of

# Nodes that stand for another one: the value in an argument, the target in an assignment, and so on.
_WRAPPING: Mapping[type[cst.CSTNode], str] = {
    cst.Arg: "value",
    cst.AsName: "name",
    cst.AssignTarget: "target",
    cst.Decorator: "decorator",
    cst.DictElement: "value",
    cst.Element: "value",
    cst.Expr: "value",
    cst.FormattedStringExpression: "expression",
    cst.Index: "value",
    cst.NamedExpr: "value",
    cst.Param: "name",
    cst.StarredDictElement: "value",
    cst.StarredElement: "value",
    cst.SubscriptElement: "slice",
    cst.WithItem: "item",
}


def facts_of(node: cst.CSTNode, spans: Mapping[int, Span], file: FileFacts) -> Facts:
    """The facts about a node of a file, by the recorded spans.

    Raises:
        ValueError: it is not a node of the file.

    """
    while type(node) in _WRAPPING:
        node = getattr(node, _WRAPPING[type(node)])
    kind: NodeKind = "call" if isinstance(node, cst.Call) else "other"
    if isinstance(node, (cst.FunctionDef, cst.Lambda)):
        kind = "definition"
    return file.facts(span_of(node, spans), kind)
