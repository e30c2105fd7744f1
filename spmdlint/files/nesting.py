"""A guard in front of LibCST's parser, which recurses on the machine's stack: too many brackets would end it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

DEEPEST = 200
"""As many brackets inside each other as Python itself accepts."""

_BRACKETS = re.compile(r"[()\[\]{}]")


def too_many_brackets(text: str) -> tuple[int, int] | None:
    """The row and column, from 1, of the first bracket that is nested deeper than Python allows."""
    # Brackets in strings count here, so that most files need no more than this.
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
            # Before Python 3.12 an f-string is one token, with the brackets of its expressions inside.
            formatted = token.type == tokenize.STRING and "f" in token.string[:2].lower()
            if token.type == tokenize.OP or formatted:
                for found in _BRACKETS.finditer(token.string):
                    yield found.group(), row, column + 1
    except (tokenize.TokenError, SyntaxError) as error:
        # What could be counted was; newer tokenizers count themselves, and fail over it.
        if "too many nested parentheses" in str(error):
            at = error.args[1]
            yield from [("(", at[0], at[1])] * (DEEPEST + 1)
