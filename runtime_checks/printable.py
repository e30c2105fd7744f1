"""Texts that come from other processes, from exceptions and from programs, as they may be printed."""

from __future__ import annotations

import re

# Controls, and marks that reverse the direction of what follows.
_UNPRINTABLE = re.compile(r"[^\t\n\x20-\x7e\xa0-\U0010ffff]|[\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str, limit: int = 2000) -> str:
    """Text from elsewhere as it may be printed: not too long, and without codes that a terminal obeys."""
    cut = text if len(text) <= limit else text[: limit - 3] + "..."
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", cut)
