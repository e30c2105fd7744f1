"""The parts of string literals, determined from the text.

Python's syntax tree joins adjacent literals, does not give positions for the text between the braces of an f-string,
and before Python 3.12 has wrong positions for the code in them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from spmdlint.program.layout import Span
from spmdlint.program.positions import Positions

_START = re.compile(r"""([A-Za-z]{0,3})('''|\"\"\"|'|")""")
_ENDS = {
    quote: re.compile(rf"[^{quote[0]}\\]*(?:(?:\\.|{quote[0]}(?!{quote[1:]}))[^{quote[0]}\\]*)*{quote}", re.DOTALL)
    if len(quote) == 3
    else re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}", re.DOTALL)
    for quote in ("'", '"', "'''", '"""')
}
_IN_TEXT = re.compile(r"[\\{}'\"]")
_IN_CODE = re.compile(r"""(?<!\w)[A-Za-z]{0,3}['"]|[()\[\]{}!:=<>#]""")
_AFTER_CODE = re.compile(r"=?\s*(?:!\s*\w+\s*)?")
_COMMENT_OR_STRING = re.compile(r"""#[^\r\n]*|(?<!\w)[A-Za-z]{0,3}['"]|['"]""")


class UnknownStringError(Exception):
    """A literal that cannot be interpreted here."""


class Template(ast.expr):
    """An f-string, or adjacent literals one of which is an f-string: text, code and literals in their order."""

    _fields = ("parts",)

    def __init__(self, parts: list[ast.expr]) -> None:
        super().__init__()
        self.parts = parts


class Literal(NamedTuple):
    """One literal; ``parts`` are the spans of an f-string's texts and of its code, None for other literals."""

    span: Span
    parts: list[tuple[Span, bool]] | None


def is_one(text: str, span: Span) -> bool:
    """Whether a string is one literal, not several adjacent ones."""
    try:
        return _literal(text, span[0]).span[1] >= span[1]
    except UnknownStringError:
        return True


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The comments in a text, with their offsets."""
    at = 0
    while (match := _COMMENT_OR_STRING.search(text, at)) is not None:
        if match.group()[0] == "#":
            yield match.start(), match.group()
            at = match.end()
        else:
            at = _literal(text, match.start()).span[1]


def template(node: ast.JoinedStr, positions: Positions) -> Template:
    """An f-string in its parts, each with its position.

    Raises:
        UnknownStringError: its text does not match the tree.

    """
    start, end = positions.span(node)
    expected = list(_codes(node))
    found: list[ast.expr] = []
    made: list[ast.expr] = []
    while start < end:
        literal = _literal(positions.text, start)
        if literal.parts is None:
            made.append(_constant(ast.literal_eval(positions.text[slice(*literal.span)]), literal.span, positions))
        else:
            parts: list[ast.expr] = []
            for span, code in literal.parts:
                part = _code(span, positions) if code else _constant(positions.text[slice(*span)], span, positions)
                parts.append(part)
                if code:
                    found.append(part)
            made.append(_placed(Template(parts), literal.span, positions))
        start = positions.after_space(literal.span[1])
    if len(found) != len(expected) or not all(map(_same, found, expected)):
        raise UnknownStringError
    (only, *others) = made
    return only if isinstance(only, Template) and not others else ast.copy_location(Template(made), node)


def _codes(node: ast.JoinedStr) -> Iterator[ast.expr]:
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            yield value.value
            if isinstance(value.format_spec, ast.JoinedStr):
                yield from _codes(value.format_spec)


def _same(one: ast.expr, other: ast.expr) -> bool:
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    return ast.dump(one) == ast.dump(other)


def _placed(node: ast.expr, span: Span, positions: Positions) -> ast.expr:
    node.lineno, node.col_offset = positions.place(span[0])
    node.end_lineno, node.end_col_offset = positions.place(span[1])
    return node


def _constant(value: str | bytes, span: Span, positions: Positions) -> ast.expr:
    return _placed(ast.Constant(value), span, positions)


def _code(span: Span, positions: Positions) -> ast.expr:
    """The code between braces, with its positions in the whole text."""
    code = positions.text[slice(*span)]
    try:
        tree = ast.parse(f"({code}\n)", mode="eval").body
    except SyntaxError:
        raise UnknownStringError from None
    bare = tree.col_offset == 0 and tree.lineno == 1  # a tuple includes the parentheses that were added here
    row, column = positions.place(span[0])
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.keyword, ast.arg)) and node.end_lineno is not None:
            node.col_offset += column - 1 if node.lineno == 1 else 0
            node.end_col_offset = (node.end_col_offset or 0) + (column - 1 if node.end_lineno == 1 else 0)
            node.lineno += row - 1
            node.end_lineno += row - 1
    if bare:
        _placed(tree, (span[0] + len(code) - len(code.lstrip()), span[1] - len(code) + len(code.rstrip())), positions)
    return tree


# -- scanning


def _literal(text: str, start: int) -> Literal:
    match = _START.match(text, start)
    if match is None:
        raise UnknownStringError
    prefix, quote = match.groups()
    try:
        if "f" in prefix.lower() or "t" in prefix.lower():
            parts: list[tuple[Span, bool]] = []
            end = _parts(text, match.end(), quote, "r" in prefix.lower(), parts) + len(quote)
            return Literal((start, end), parts)
    except (IndexError, ValueError):
        raise UnknownStringError from None
    ending = _ENDS[quote].match(text, match.end())
    if ending is None:
        raise UnknownStringError
    return Literal((start, ending.end()), None)


def _parts(
    text: str, at: int, quote: str, raw: bool, parts: list[tuple[Span, bool]], *, in_format: bool = False
) -> int:
    """Collect the parts of an f-string, or of a format in one, and return its end."""
    start = at
    while True:
        match = _IN_TEXT.search(text, at)
        if match is None:
            raise UnknownStringError
        at = match.start()
        character = text[at]
        if character == "\\":
            if not raw and text.startswith("\\N{", at):
                at = text.index("}", at) + 1
            else:
                at += 1 if text[at + 1] in "{}" else 2
        elif character in "{}":
            if not in_format and text[at + 1] == character:
                at += 2
                continue
            if start < at:
                parts.append(((start, at), False))
            if character == "}":
                return at
            start = at = _replacement(text, at + 1, quote, raw, parts)
        elif text.startswith(quote, at):
            if start < at:
                parts.append(((start, at), False))
            return at
        else:
            at += 1


def _replacement(text: str, start: int, quote: str, raw: bool, parts: list[tuple[Span, bool]]) -> int:
    """Collect the code after a brace with the parts of its format, and return where the text continues."""
    end = _code_end(text, start)
    parts.append(((start, end), True))
    match = _AFTER_CODE.match(text, end)
    at = end if match is None else match.end()
    if text[at] == ":":
        at = _parts(text, at + 1, quote, raw, parts, in_format=True)
    if text[at] != "}":
        raise UnknownStringError
    return at + 1


def _code_end(text: str, at: int) -> int:
    depth = 0
    while (match := _IN_CODE.search(text, at)) is not None:
        at = match.end()
        character = text[at - 1]
        if character in "'\"":
            at = _literal(text, match.start()).span[1]
        elif character == "#":
            at = text.index("\n", at)
        elif character in "([{":
            depth += 1
        elif depth:
            depth -= character in ")]}"
        elif character in "!=<>":
            if text[at] == "=":
                at += 1
            elif character in "!=":
                return at - 1
        else:
            return at - 1
    raise UnknownStringError
