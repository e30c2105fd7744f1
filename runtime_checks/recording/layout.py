"""How the two files of a recording are laid out, which its writer and its readers share.

The first is a ring buffer of numbers, after two slots for counts and prefixes.
The second has a line of JSON for each event and each program.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple, TypedDict

from spmdlint.runtime_checks.records import Count, Hash, ProgramFields, ProgramRecord, State

CALLS = 1 << 16
SLOT = 1 << 14  # size of each of the two slots for counts and prefixes
CALL = struct.Struct("<II")
START = 2 * SLOT
SIZE = START + CALLS * CALL.size
WORD = (1 << 32) - 1
MANY = 64  # numbers; longer lists of devices are written as runs
MAX_UNPACKED = 1 << 20  # devices of one program


class Checkpoint(NamedTuple):
    """How many calls had been made at some moment, and the count and the prefix of each group then."""

    written: Count
    groups: Mapping[str, tuple[Count, Hash]]


class Runs(TypedDict):
    """A long list of numbers as runs of a first number and a length: [[0, 8000]]."""

    runs: list[tuple[Count, Count]]


class RecordedProgram(ProgramFields, total=False):
    """A :class:`ProgramRecord` in a line: long lists of devices are packed."""

    devices: list[Count] | Runs | None


Line = TypedDict(
    "Line",
    {
        "job": str,
        "group": str,
        "members": list[Count],
        "event": Count,
        "in": str,
        "digest": str,
        "function": str | None,
        "filename": str | None,
        "line": Count | None,
        "callers": list[str],
        "aside": bool,
        "once": bool,
        "program": str,
        "record": RecordedProgram,
        "end": State,
        "lockstep": bool,
        "omitted": str,
        "versions": dict[str, str],
        "layers": dict[str, str],
    },
    total=False,
)
"""A line of the second file, which is of one kind: the job, the mode, a group with its members, an event in a group, a
program with its record, how the program ended, what was omitted, or what the process runs with."""


def packed_program(record: ProgramRecord) -> RecordedProgram:
    """A record as it is written."""
    fields: ProgramFields = record
    return {**fields, "devices": pack_runs(record.get("devices"))}


def unpacked_program(record: RecordedProgram) -> ProgramRecord:
    """The record that :func:`packed_program` packed; raises ``ValueError`` for a list that no recording has."""
    fields: ProgramFields = record
    return {**fields, "devices": unpack_runs(record.get("devices"))}


def pack_runs(numbers: list[int] | None) -> list[int] | Runs | None:
    """A long list of numbers as runs, where that is shorter."""
    if numbers is None or len(numbers) <= MANY:
        return numbers
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    return {"runs": runs} if 2 * len(runs) < len(numbers) else numbers


def unpack_runs(packed: list[int] | Runs | None) -> list[int] | None:
    """The list that :func:`pack_runs` packed."""
    if not isinstance(packed, dict):
        return packed
    if sum(many for _, many in packed["runs"]) > MAX_UNPACKED:
        raise ValueError("a list that no recording has")
    return [first + n for first, many in packed["runs"] for n in range(many)]
