"""Texts and numbers made short, for the store and for files; what comes from elsewhere is unpacked up to a limit."""

from __future__ import annotations

import base64
import zlib


def pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode()


def unpack(packed: str, most: int) -> bytes:
    """At most so many bytes of what :func:`pack` packed; none of any other text."""
    try:
        return zlib.decompressobj().decompress(base64.b64decode(packed), most)
    except (ValueError, zlib.error):
        return b""
