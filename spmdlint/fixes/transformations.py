"""Makes the edits for changes of a syntax tree, with LibCST: the layout and the comments around them stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import libcst as cst

from spmdlint.changes import AddKeyword, Change, Wrap
from spmdlint.diagnostics import Edit
from spmdlint.program.layout import Span
from spmdlint.program.positions import line_starts
from spmdlint.program.spans import record_spans, span_of
from spmdlint.replacing import ReplacementError, replacing

_SPACE = cst.SimpleWhitespace(" ")
_NOWHERE = cst.SimpleWhitespace("")


class Transformer:
    """Makes the edits for changes of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._expressions: dict[Span, cst.BaseExpression] = {}
        try:
            self._module = cst.parse_module(text)
        except cst.ParserSyntaxError:
            return
        if self._module.code == text:
            spans = record_spans(self._module).spans
            for node in _expressions(self._module):
                if id(node) in spans:
                    self._expressions.setdefault(span_of(node, spans), node)

    def edits(self, change: Change) -> tuple[Edit, ...]:
        """The edits; none if the text has no such expression, or LibCST cannot parse it exactly."""
        node = self._expressions.get(self._span(change))
        make = _MAKING[type(change)]
        new = make(node, change) if node is not None else None
        if node is None or new is None:
            return ()
        for each in (new, _enclosed(new)):  # `in{1, 2}` needs no space, and `insorted({1, 2})` is a different word
            try:
                return replacing(self._module, node, each)
            except ReplacementError:
                continue
        return ()

    def _span(self, change: Change) -> Span:
        starts = line_starts(self._text)
        (row, column), (last, end) = change.start, change.end
        return (starts[row - 1] + column - 1, starts[last - 1] + end - 1) if last <= len(starts) else (-1, -1)


def _expressions(module: cst.Module) -> Iterator[cst.BaseExpression]:
    """The expressions of a module, outer ones first."""
    pending: list[cst.CSTNode] = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.BaseExpression):
            yield node
        pending += reversed(node.children)


def _enclosed(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])


# -- the changes


def _wrapped(node: cst.BaseExpression, change: Wrap) -> cst.BaseExpression:
    """The call takes the place of the expression, inside the parentheses around it."""
    call = cst.Call(cst.parse_expression(change.function), [cst.Arg(node)])
    if isinstance(node, (cst.Tuple, cst.GeneratorExp)) or not node.lpar:
        return call  # the parentheses are its own
    bare = cst.Arg(node.with_changes(lpar=[], rpar=[]))
    return call.with_changes(args=[bare], lpar=node.lpar, rpar=node.rpar)


def _with_keyword(node: cst.BaseExpression, change: AddKeyword) -> cst.BaseExpression | None:
    if not isinstance(node, cst.Call) or not node.args:
        return None
    *before, last = map(_beside_others, node.args)
    between: cst.BaseParenthesizableWhitespace = _SPACE
    if before and isinstance(before[-1].comma, cst.Comma):
        between = _plain(before[-1].comma.whitespace_after)
    elif _breaks(node.whitespace_before_args):
        between = _plain(node.whitespace_before_args)
    added = _keyword(change.name, change.value)
    if isinstance(last.comma, cst.Comma):
        closing = last.comma.whitespace_after
        if _breaks(closing) and _breaks(between):  # the comment behind what was the last argument stays there
            closing, between = _with_first_row_of(between, closing), _with_first_row_of(closing, between)
        added = added.with_changes(comma=last.comma.with_changes(whitespace_after=closing))
    else:
        added = added.with_changes(whitespace_after_arg=last.whitespace_after_arg)
        last = last.with_changes(whitespace_after_arg=_NOWHERE)
    last = last.with_changes(comma=cst.Comma(whitespace_after=between))
    return node.with_changes(args=[*before, last, added])


def _beside_others(argument: cst.Arg) -> cst.Arg:
    """An argument that need not be the only one: a generator is then in parentheses of its own."""
    value = argument.value
    if isinstance(value, cst.GeneratorExp) and not value.lpar:
        return argument.with_changes(value=_enclosed(value))
    return argument


def _keyword(name: str, value: str) -> cst.Arg:
    equal = cst.AssignEqual(whitespace_before=_NOWHERE, whitespace_after=_NOWHERE)
    return cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=equal)


# -- white space


def _breaks(space: cst.BaseParenthesizableWhitespace) -> bool:
    """Whether a white space goes over the end of a row."""
    return isinstance(space, cst.ParenthesizedWhitespace)


def _plain(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """A white space without its comments and empty rows."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    return space.with_changes(first_line=cst.TrailingWhitespace(newline=space.first_line.newline), empty_lines=[])


def _with_first_row_of(
    other: cst.BaseParenthesizableWhitespace, space: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """A white space with the end of the first row of another one, where a comment may be."""
    if isinstance(other, cst.ParenthesizedWhitespace) and isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=other.first_line)
    return space


_MAKING: Mapping[type[Change], Callable[[cst.BaseExpression, Any], cst.BaseExpression | None]] = {
    Wrap: _wrapped,
    AddKeyword: _with_keyword,
}
