"""How the two files of a recording are laid out, which its writer and its readers share.

The first is a ring buffer of numbers, with two slots before it for counts and prefixes and a ring of times after it.
The second has a line of JSON for each event and each program.
"""

from __future__ import annotations

import struct
from typing import Any

from spmdlint.runtime_checks.recording import timing

CALLS = 1 << 16
SLOT = 1 << 14  # size of each of the two slots for counts and prefixes
CALL = struct.Struct("<II")
START = 2 * SLOT
TIMES = START + CALLS * CALL.size
SIZE = TIMES + timing.SIZE
WORD = (1 << 32) - 1
MANY = 64  # numbers; longer lists of devices are written as runs
MAX_UNPACKED = 1 << 20  # devices of one program


def pack_runs(numbers: Any) -> Any:
    """A long list of numbers as runs [first, length], as in {"runs": [[0, 8000]]}; other values as they are."""
    if not isinstance(numbers, list) or len(numbers) <= MANY:
        return numbers
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return {"runs": runs} if 2 * len(runs) < len(numbers) else numbers


def unpack_runs(packed: Any) -> Any:
    """The list that :func:`pack_runs` packed; other values as they are."""
    if not isinstance(packed, dict):
        return packed
    runs = [(int(first), int(many)) for first, many in packed["runs"]]
    if sum(many for _, many in runs) > MAX_UNPACKED:
        raise ValueError("a list that no recording has")
    return [first + n for first, many in runs for n in range(many)]
