"""Where the places of a text are in a later version of it.

The findings of an analysis are about the text that it read. Until the next one they are shown in the text that the user
has typed since, each moved along with its code; a finding whose code was deleted is not shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property

from msgspec import Struct

from spmdlint.diagnostics import Edit, Location, Place
from spmdlint.files.read import split_rows

MOST_COMPARED = 1_000_000
"""The most pairs of rows that are compared to tell several edits from one; beyond that they count as one."""
_END = re.compile("\r\n|\r|\n")


class Span(Struct, frozen=True):
    """From ``start`` up to but not including ``end``."""

    start: Location
    end: Location


class Change(Struct, frozen=True):
    """A part of the old text and the part of the new one in its place, as offsets."""

    start: int
    end: int
    new_start: int
    new_end: int


class Moves:
    """The way from the places of an old text to those of a new one."""

    def __init__(self, old: str, new: str) -> None:
        self._old = Rows(old)
        self._new = Rows(new)
        self._same = old == new

    def span(self, span: Span) -> Span | None:
        """A span of the old text in the new one; None if its code was deleted."""
        if self._same:
            return span
        start, end = self._moved(self._old.offset(span.start)), self._moved_end(self._old.offset(span.end))
        if start >= end and span.start < span.end:
            return None
        return Span(self._new.location(start), self._new.location(max(start, end)))

    def place(self, place: Place) -> Place | None:
        """The same for a place in the file."""
        span = self.span(Span(place.start, place.end))
        return None if span is None else Place(place.path, span.start, span.end)

    def unchanged(self, span: Span) -> Span | None:
        """The same, if the text of the span is what it was; otherwise None."""
        moved = self.span(span)
        return None if moved is None or self._new.part(moved) != self._old.part(span) else moved

    def edits(self) -> Iterator[Edit]:
        """The edits that turn the old text into the new one."""
        for change in self._changes:
            start, end = self._old.location(change.start), self._old.location(change.end)
            yield Edit(start, end, self._new.text[change.new_start : change.new_end])

    @cached_property
    def _changes(self) -> list[Change]:
        """What changed, in order."""
        return [] if self._same else list(changes(self._old, self._new))

    def _moved(self, offset: int) -> int:
        """Where the character at an offset is; if it was deleted, where it would be."""
        change = self._last(offset)
        if change is None:
            return offset
        return change.new_start if offset < change.end else offset + change.new_end - change.end

    def _moved_end(self, offset: int) -> int:
        """Where the character before an offset ends."""
        change = self._last(offset - 1)
        if change is None:
            return offset
        return change.new_end if offset <= change.end else offset + change.new_end - change.end

    def _last(self, offset: int) -> Change | None:
        """The last change that begins at or before an offset."""
        number = bisect_right([change.start for change in self._changes], offset)
        return self._changes[number - 1] if number else None


class Rows:
    """A text, with the offsets at which its rows begin."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def all(self) -> list[str]:
        """The rows with their ends; the last one has none, and may be empty."""
        return [row + end for row, end in zip(split_rows(self.text), [*_END.findall(self.text), ""], strict=True)]

    @cached_property
    def starts(self) -> list[int]:
        """Where the rows begin, and where the last one ends."""
        starts = [0]
        for row in self.all:
            starts.append(starts[-1] + len(row))
        return starts

    def offset(self, location: Location) -> int:
        """The offset of a location; the nearest one in the text, if that has none there."""
        if location.row > len(self.all):
            return len(self.text)
        return min(self.starts[location.row - 1] + location.column - 1, len(self.text))

    def location(self, offset: int) -> Location:
        """The row and column of an offset."""
        row = min(bisect_right(self.starts, offset), len(self.all))
        return Location(row, offset - self.starts[row - 1] + 1)

    def part(self, span: Span) -> str:
        """The text of a span."""
        return self.text[self.offset(span.start) : self.offset(span.end)]


def changes(old: Rows, new: Rows) -> Iterator[Change]:
    """What changed between two texts, in order: as few characters as whole rows and their ends can tell."""
    first = _shared(old.all, new.all)
    last = _shared(old.all[first:][::-1], new.all[first:][::-1])
    rows, new_rows = old.all[first : len(old.all) - last], new.all[first : len(new.all) - last]
    for start, end, new_start, new_end in _blocks(rows, new_rows):
        whole = Change(
            old.starts[first + start],
            old.starts[first + end],
            new.starts[first + new_start],
            new.starts[first + new_end],
        )
        yield _narrowed(whole, old.text, new.text)


def _blocks(rows: Sequence[str], new_rows: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The rows that were replaced by others: where they begin and end, and the same of the new ones."""
    if len(rows) * len(new_rows) > MOST_COMPARED:
        yield 0, len(rows), 0, len(new_rows)
        return
    for kind, start, end, new_start, new_end in SequenceMatcher(None, rows, new_rows, autojunk=False).get_opcodes():
        if kind == "replace" and end - start == new_end - new_start:
            # A word that was replaced in several rows, or the ends of all of them.
            yield from ((start + n, start + n + 1, new_start + n, new_start + n + 1) for n in range(end - start))
        elif kind != "equal":
            yield start, end, new_start, new_end


def _narrowed(change: Change, old: str, new: str) -> Change:
    """The change without the characters that are the same at both ends."""
    removed, added = old[change.start : change.end], new[change.new_start : change.new_end]
    before = _shared(removed, added)
    after = _shared(removed[before:][::-1], added[before:][::-1])
    return Change(change.start + before, change.end - after, change.new_start + before, change.new_end - after)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many rows, or characters, two texts share at their start."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
