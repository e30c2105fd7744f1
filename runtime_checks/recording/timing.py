"""When the calls of a recording were made: a ring buffer of counts, each with the time of numbering.

A call has no timestamp, because it may cost only eight bytes. It lies between two of these times, which are a quarter
of a second apart in background mode, and one call apart in lockstep.
"""

from __future__ import annotations

import struct
import time
from bisect import bisect_left
from mmap import mmap

SAMPLES = 1 << 14
_SAMPLE = struct.Struct("<Qd")
SIZE = SAMPLES * _SAMPLE.size
LONGEST = 1.0  # a call was made at most this many seconds before it was numbered


class Times:
    """The ring at an offset of a mapped file."""

    def __init__(self, memory: mmap, offset: int) -> None:
        self._memory = memory
        self._offset = offset
        self._next = 0

    def add(self, written: int) -> None:
        """Record that ``written`` calls have been made by now."""
        _SAMPLE.pack_into(self._memory, self._offset + self._next * _SAMPLE.size, written, time.time())
        self._next = (self._next + 1) % SAMPLES


def read_times(data: bytes, offset: int) -> list[tuple[int, float]]:
    """The samples of a recording, by count; [] if it is from a version without them."""
    if len(data) < offset + SIZE:
        return []
    found = (_SAMPLE.unpack_from(data, offset + place * _SAMPLE.size) for place in range(SAMPLES))
    return sorted((int(written), float(when)) for written, when in found if written and when > 0)


def times_of(numbers: range, samples: list[tuple[int, float]]) -> list[float | None]:
    """The time of each call by its number, spread evenly over the possible times."""
    counts = [written for written, _ in samples]
    found: list[float | None] = []
    for number in numbers:
        at = bisect_left(counts, number)
        if at == len(samples):
            found.append(samples[-1][1] if samples else None)  # made after the last numbering, at an unknown time
            continue
        upto, end = samples[at]
        begun, start = samples[at - 1] if at else (upto - 1, end)
        start = max(start, end - LONGEST)
        found.append(start + (end - start) * (number - begun) / max(1, upto - begun) if number > begun else None)
    return found
