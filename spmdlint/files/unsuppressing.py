"""Removes a code without effect from its comment, and the comment if nothing is left of it.

The reason of a comment on a line of its own may go on in comment lines below. They are removed with it only where they
certainly belong to it: a comment that stays too long is a blemish, but one that is about other code is lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spmdlint.diagnostics import Edit, Location

if TYPE_CHECKING:
    from spmdlint.program.summary import Comment

# Where the next comment begins; `#12` names an issue, and is part of the reason.
_NEXT = re.compile(r"\s*#(?!\d)")
_ENDS = (".", "!", "?", ":")
# A text that ends like this goes on, and so does one before a text that begins like that.
_UNFINISHED = re.compile(
    r"(?:[,;(\[-]|\b(?:a|an|and|as|at|because|but|by|every|for|from|in|is|its|of|on|or|our|so|that"
    r"|the|their|these|this|those|to|when|where|which|while|with))$"
)
_CONTINUING = re.compile(r"(?:and|but|because|nor|or|which)\b")
_PROSE = re.compile(r"#[ \t]+(?P<text>[a-z][^#]*)$")
_LABEL = re.compile(r"[\w.-]+[ \t]*:|.*\b(?:noqa|pragma)\b", re.IGNORECASE)
"""A comment for a tool, such as ``type: ignore``, or one with a label of its own, such as ``todo:``."""


def removal(
    comment: Comment, rows: Sequence[str], word: tuple[int, int], listed: tuple[int, int], part: tuple[int, int]
) -> Edit | None:
    """The edit that removes a word from a comment in the rows of a file.

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
        below = comment.row + 1 + _continued(text[part[1] :].strip(), comment, rows)
        return Edit(Location(comment.row, 1), Location(below, 1), "")
    row = rows[comment.row - 1] if comment.row <= len(rows) else text
    before = row[: comment.column - 1]
    return Edit(Location(comment.row, len(before.rstrip()) + 1), Location(comment.row, len(row) + 1), "")


def _continued(reason: str, comment: Comment, rows: Sequence[str]) -> int:
    """How many comment lines directly below certainly belong to the reason of a comment on a line of its own.

    They begin in its column and with a small letter. The first goes on with the reason if the reason ends in the middle
    of a sentence, or the line begins there; the next ones do until a sentence ends.
    """
    count = 0
    last = reason
    for row in rows[comment.row :]:
        prose = _PROSE.match(row[comment.column - 1 :].rstrip())
        text = prose["text"] if prose is not None and not row[: comment.column - 1].strip() else ""
        if not last or not text or last.endswith(_ENDS) or _LABEL.match(text):
            break
        if count == 0 and not _UNFINISHED.search(last) and not _CONTINUING.match(text):
            break
        count, last = count + 1, text
    return count


def _with_separator(text: str, word: tuple[int, int], listed: tuple[int, int]) -> tuple[int, int]:
    """A word with the separator after it, or before it if it is the last."""
    if word[1] < listed[1]:
        behind = text[word[1] : listed[1]]
        return word[0], word[1] + len(behind) - len(behind.lstrip(" ,\t"))
    before = text[listed[0] : word[0]]
    return listed[0] + len(before.rstrip(" ,\t")), word[1]


def _edit(comment: Comment, start: int, end: int) -> Edit:
    return Edit(Location(comment.row, comment.column + start), Location(comment.row, comment.column + end), "")
