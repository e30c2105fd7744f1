"""Applies edits to a text. A fix is applied as a whole or not at all; a conflicting one waits for the next round."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct

from spmdlint.diagnostics import Edit, Fix, Location

_NEWLINE = re.compile("\r\n|\r|\n")


class Applied(Struct, frozen=True):
    """The new text, and how many of the fixes were applied."""

    text: str
    count: int


class _Change(Struct, frozen=True, order=True):
    start: int
    end: int
    content: str


def apply(text: str, fixes: Iterable[Fix]) -> Applied:
    """Apply fixes to a text in the order of their starts; a fix that overlaps an applied one is left out."""
    starts = [0, *(found.end() for found in _NEWLINE.finditer(text)), len(text)]  # the last row may lack a line end
    wanted = sorted((tuple(sorted(_change(edit, starts) for edit in fix.edits)) for fix in fixes), key=_first)
    taken: set[_Change] = set()
    count = 0
    for changes in wanted:
        if not changes or not _well_formed(changes, len(text)):
            continue
        new = [change for change in changes if change not in taken]
        if new and (len(new) < len(changes) or any(_in_the_way(change, other) for change in new for other in taken)):
            continue
        taken.update(new)
        count += 1
    for change in sorted(taken, reverse=True):
        text = text[: change.start] + change.content + text[change.end :]
    return Applied(text, count)


def _change(edit: Edit, starts: list[int]) -> _Change:
    return _Change(_offset(edit.start, starts), _offset(edit.end, starts), edit.content)


def _offset(location: Location, starts: list[int]) -> int:
    if not 0 < location.row <= len(starts):
        return -1
    return starts[location.row - 1] + location.column - 1


def _first(changes: tuple[_Change, ...]) -> tuple[_Change, ...]:
    return changes


def _well_formed(changes: tuple[_Change, ...], length: int) -> bool:
    """Whether the changes of one fix lie in the text without overlapping: a bug in a rule must not damage a file."""
    inside = all(0 <= change.start <= change.end <= length for change in changes)
    return inside and all(one.end <= other.start for one, other in pairwise(changes))


def _in_the_way(one: _Change, other: _Change) -> bool:
    """Whether two changes overlap, or insert at the same place, where their order would be a guess."""
    if one.start == other.start:
        return True
    return one.start < other.end and other.start < one.end
