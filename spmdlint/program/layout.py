"""The positions of one file's code in its text, kept apart from its meaning.

A comment, a blank line or a docstring moves code and changes nothing else. So a layout records whether its positions
were used: what was found without using them is found again, however the code has moved.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

Span = tuple[int, int]
"""A half-open range of offsets into the text, in characters."""


class Places(msgspec.Struct, array_like=True):
    """The offsets of the rows and, by function, of its name and of its operations."""

    line_starts: list[int]
    extents: list[Span] = []
    spans: list[list[Span]] = []

    def position(self, offset: int) -> tuple[int, int]:
        """Row and column, both from 1, of an offset in characters."""
        row = bisect_right(self.line_starts, offset)
        return row, offset - self.line_starts[row - 1] + 1


class Layout:
    """The places of one file, kept as bytes until they are used: most files' places never are."""

    __slots__ = ("_places", "asked", "written")

    def __init__(self, written: bytes = b"") -> None:
        self._places: Places | None = None
        self.written = written
        self.asked = False

    def keep(self, places: Places) -> None:
        """Set the places of a file that has just been read."""
        self.written = msgspec.msgpack.encode(places)

    @property
    def places(self) -> Places:
        """The places; using them is recorded."""
        self.asked = True
        return self._read()

    def holds(self, function: int, outer: int, inner: int) -> bool:
        """Whether one operation of a function is inside another; moving code does not change that."""
        spans = self._read().spans[function]
        return spans[outer][0] <= spans[inner][0] and spans[inner][1] <= spans[outer][1]

    def _read(self) -> Places:
        if self._places is None:
            self._places = _decoder.decode(self.written)
        return self._places


_decoder = msgspec.msgpack.Decoder(Places)
