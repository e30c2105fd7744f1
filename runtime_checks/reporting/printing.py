"""What may be printed: texts from other processes, from exceptions and from programs; and how it is written."""

from __future__ import annotations

import os
import re

MAX_WRITTEN = 1 << 20  # characters
# Controls, and marks that reverse the direction of what follows.
_UNPRINTABLE = re.compile(r"[^\t\n\x20-\x7e\xa0-\U0010ffff]|[\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str, limit: int = 2000) -> str:
    """Text from elsewhere as it may be printed: not too long, and without codes that a terminal obeys."""
    cut = text if len(text) <= limit else text[: limit - 3] + "..."
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", cut)


def write_error(words: str) -> None:
    """Write to standard error past Python's buffers: the process may end at any moment."""
    data = plain(words, MAX_WRITTEN).encode(errors="replace")
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        return
