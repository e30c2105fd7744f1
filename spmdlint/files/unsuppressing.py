"""Removes a code without effect from its comment, and the comment if nothing is left of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Edit, Location

if TYPE_CHECKING:
    from spmdlint.program.summary import Comment

# Where the next comment begins; `#12` names an issue, and is part of the reason.
_NEXT = re.compile(r"\s*#(?!\d)")


def removal(
    comment: Comment, row: str, word: tuple[int, int], listed: tuple[int, int], part: tuple[int, int]
) -> Edit | None:
    """The edit that removes a word from a comment in a row of source.

    ``word``, ``listed`` (all words) and ``part`` (the directive they belong to, with its ``#``) are spans in the
    comment. The text after the part, up to the next ``#``, is its reason and is removed with its last word.
    """
    text = comment.text
    if word != listed:
        start, end = _with_separator(text, word, listed)
        return _edit(comment, start, end)
    following = _NEXT.search(text, part[1])
    start, end = part[0], following.start() if following else len(text)
    if start > 0 or end < len(text):
        # Another tool's comment precedes or follows it, with its own `#`.
        start -= len(text[:start]) - len(text[:start].rstrip())
        end += len(text[end:]) - len(text[end:].lstrip()) if start == 0 else 0
        return _edit(comment, start, end)
    if comment.own_line:
        return Edit(Location(comment.row, 1), Location(comment.row + 1, 1), "")
    before = row[: comment.column - 1]
    return Edit(Location(comment.row, len(before.rstrip()) + 1), Location(comment.row, len(row) + 1), "")


def _with_separator(text: str, word: tuple[int, int], listed: tuple[int, int]) -> tuple[int, int]:
    """A word with the separator after it, or before it if it is the last."""
    if word[1] < listed[1]:
        behind = text[word[1] : listed[1]]
        return word[0], word[1] + len(behind) - len(behind.lstrip(" ,\t"))
    before = text[listed[0] : word[0]]
    return listed[0] + len(before.rstrip(" ,\t")), word[1]


def _edit(comment: Comment, start: int, end: int) -> Edit:
    return Edit(Location(comment.row, comment.column + start), Location(comment.row, comment.column + end), "")
