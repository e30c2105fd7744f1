"""Messages between a process and its worker, over pipes: the length of each, and then its bytes."""

from __future__ import annotations

from typing import IO

LENGTH = 8
"""The number of bytes that give the length of the message after them."""
_LONGEST = 1 << 30


def send(stream: IO[bytes], message: bytes) -> None:
    """Write one message."""
    stream.write(len(message).to_bytes(LENGTH, "big"))
    stream.write(message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None if there is no complete one."""
    length = length_of(stream.read(LENGTH))
    if length is None:
        return None
    message = stream.read(length)
    return message if len(message) == length else None


def length_of(start: bytes) -> int | None:
    """The length of the message that begins in this way; None if none does."""
    length = int.from_bytes(start, "big")
    return length if len(start) == LENGTH and 0 < length <= _LONGEST else None
