"""Where the code of one file stands in its text, kept apart from what it means.

A comment, a blank line or a docstring moves code and changes nothing else. So a layout remembers whether anybody asked
for it: what was found without asking is found again, however the code has moved.
"""

from __future__ import annotations

import msgspec

Span = tuple[int, int]
"""From an offset into the text up to and without another one, in characters."""


class Places(msgspec.Struct, array_like=True):
    """Where rows begin, and by function where it is named and where its operations stand."""

    line_starts: list[int]
    extents: list[Span] = []
    spans: list[list[Span]] = []


class Layout:
    """The places of one file; they are read from ``written`` when somebody asks for them."""

    __slots__ = ("_places", "_written", "asked")

    def __init__(self, places: Places | None = None, written: bytes = b"") -> None:
        self._places = places
        self._written = written
        self.asked = False

    @property
    def places(self) -> Places:
        """The places, for somebody who depends on them."""
        self.asked = True
        if self._places is None:
            self._places = _decoder.decode(self._written)
        return self._places

    def written(self) -> bytes:
        """The places as bytes; equal bytes are equal places."""
        return self._written if self._places is None else msgspec.msgpack.encode(self._places)


_decoder = msgspec.msgpack.Decoder(Places)
