"""A digest of all calls of a group so far, for every count: equal on two processes as long as their sequences are.

A polynomial over the digests of the calls, modulo 2 ** 64. It can be extended by many calls at once, and reversed, so
that a process that kept its last calls and its last prefix can compute the prefix at each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_FACTOR = 0x9E3779B97F4A7C15
_MODULUS = 1 << 64
FEW = 8  # up to this many calls, Python's integers are faster than NumPy's arrays


def after(prefix: int, count: int, digest: int) -> int:
    """The prefix after one more call than ``count``."""
    return (prefix + digest * pow(_FACTOR, count + 1, _MODULUS)) % _MODULUS


def before(prefix: int, count: int, digest: int) -> int:
    """The prefix before call ``count``, which has this digest."""
    return (prefix - digest * pow(_FACTOR, count, _MODULUS)) % _MODULUS


def extend(prefix: int, count: int, digests: Sequence[int]) -> Any:
    """The prefixes after each of several more calls."""
    if len(digests) <= FEW:
        found = []
        for digest in digests:
            prefix = after(prefix, count, digest)
            count += 1
            found.append(prefix)
        return found
    import numpy as np

    powers = np.full(len(digests), _FACTOR, np.uint64)
    powers[0] = pow(_FACTOR, count + 1, _MODULUS)
    np.multiply.accumulate(powers, out=powers)
    powers *= np.array(digests, np.uint64)
    powers[0] = (int(powers[0]) + prefix) % _MODULUS  # NumPy warns if a single number overflows
    return np.cumsum(powers, out=powers)


class Trail:
    """The prefixes of a group at its last calls, in a ring buffer."""

    SIZE = 1 << 15

    def __init__(self) -> None:
        import numpy as np

        self._ring = np.zeros(self.SIZE, np.uint64)
        self._newest = 0

    def put(self, count: int, prefixes: Any) -> None:
        """Keep the prefixes of the calls after ``count``."""
        kept = prefixes[-self.SIZE :]
        start = count + len(prefixes) - len(kept)
        first = start % self.SIZE
        room = self.SIZE - first
        self._ring[first : first + min(room, len(kept))] = kept[:room]
        self._ring[: max(0, len(kept) - room)] = kept[room:]
        self._newest = start + len(kept)

    def at(self, count: int) -> int | None:
        """The prefix after call ``count``, or None if it is no longer known, or not yet."""
        if count == 0:
            return 0
        if not self._newest - self.SIZE < count <= self._newest:
            return None
        return int(self._ring[(count - 1) % self.SIZE])
