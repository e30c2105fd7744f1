"""A guard for LibCST's parser, which recurses on the C stack: too many nested brackets would crash it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

DEEPEST = 200
"""The deepest nesting of brackets that Python itself accepts."""

_BRACKETS = re.compile(r"[()\[\]{}]")


def too_many_brackets(text: str) -> tuple[int, int] | None:
    """The row and column, from 1, of the first bracket that is nested deeper than Python allows."""
    # Brackets in strings count here, so that most files need only this pass.
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += 1 if found.group() in "([{" else -1
        if depth > DEEPEST:
            return _first_too_deep(text)
    return None


def _first_too_deep(text: str) -> tuple[int, int] | None:
    depth = 0
    for bracket, row, column in _brackets(text):
        depth += 1 if bracket in "([{" else -1
        if depth > DEEPEST:
            return row, column
    return None


def _brackets(text: str) -> Iterator[tuple[str, int, int]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            row, column = token.start
            # Before Python 3.12 an f-string is one token that includes the brackets of its expressions.
            formatted = token.type == tokenize.STRING and "f" in token.string[:2].lower()
            if token.type == tokenize.OP or formatted:
                for found in _BRACKETS.finditer(token.string):
                    yield found.group(), row, column + 1
    except (tokenize.TokenError, SyntaxError) as error:
        # Everything before the error was counted; newer tokenizers count themselves, and fail at too many.
        if "too many nested parentheses" in str(error):
            at = error.args[1]
            yield from [("(", at[0], at[1])] * (DEEPEST + 1)
