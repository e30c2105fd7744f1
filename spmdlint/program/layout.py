"""Where the code of one file stands in its text, kept apart from what it means.

A comment, a blank line or a docstring moves code and changes nothing else. So a layout remembers whether anybody asked
for it: what was found without asking is found again, however the code has moved.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

Span = tuple[int, int]
"""From an offset into the text up to and without another one, in characters."""


class Places(msgspec.Struct, array_like=True):
    """Where rows begin, and by function where it is named and where its operations stand."""

    line_starts: list[int]
    extents: list[Span] = []
    spans: list[list[Span]] = []

    def position(self, offset: int) -> tuple[int, int]:
        """Row and column, both from 1, of an offset in characters."""
        row = bisect_right(self.line_starts, offset)
        return row, offset - self.line_starts[row - 1] + 1


class Layout:
    """The places of one file, as bytes until somebody asks for them: most files' places are never looked at."""

    __slots__ = ("_places", "asked", "written")

    def __init__(self, written: bytes = b"") -> None:
        self._places: Places | None = None
        self.written = written
        self.asked = False

    def keep(self, places: Places) -> None:
        """Take the places of a file that has just been read."""
        self.written = msgspec.msgpack.encode(places)

    @property
    def places(self) -> Places:
        """The places, for somebody who depends on them."""
        self.asked = True
        return self._read()

    def holds(self, function: int, outer: int, inner: int) -> bool:
        """Does one operation of a function stand inside of another: what moves code alone does not change that."""
        spans = self._read().spans[function]
        return spans[outer][0] <= spans[inner][0] and spans[inner][1] <= spans[outer][1]

    def _read(self) -> Places:
        if self._places is None:
            self._places = _decoder.decode(self.written)
        return self._places


_decoder = msgspec.msgpack.Decoder(Places)
