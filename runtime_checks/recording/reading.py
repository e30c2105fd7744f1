"""Reading a recording: the calls of a process that are still there, the records of their programs, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spmdlint.runtime_checks.recording.layout import (
    CALL,
    CALLS,
    SIZE,
    SLOT,
    START,
    WORD,
    Checkpoint,
    Line,
    unpacked_program,
)
from spmdlint.runtime_checks.recording.replay import Replay, Row
from spmdlint.runtime_checks.records import Build, EventRecord, ProgramRecord, State, UnknownRecordError, read_record


def read(path: Path) -> list[Row]:
    """The recorded calls of a process, oldest first, as rows of a history; [] if there is no readable file."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    if len(data) < SIZE:
        return []  # no recording
    written, groups = _checkpoint(data)
    lines = _lines(path)
    members, events = lines.members, lines.events
    calls = {low: number for low, number in CALL.iter_unpack(data[START:SIZE]) if number}
    known = [events[calls[at & WORD]] for at in _before(written, calls, events)]
    replay = Replay(members, groups)
    rows = replay.back(known)
    at = written + 1
    while calls.get(at & WORD) in events:
        rows.append(replay.on(events[calls[at & WORD]]))
        at += 1
    return rows


def _before(written: int, calls: Mapping[int, int], events: Mapping[int, EventRecord]) -> list[int]:
    """The numbers of the calls up to a checkpoint that can still be read, oldest first."""
    first = written
    while first > 0 and calls.get(first & WORD) in events and written - first < CALLS:
        first -= 1
    return list(range(first + 1, written + 1))


def _checkpoint(data: bytes) -> Checkpoint:
    best = Checkpoint(0, {})
    for found in _checkpoints(data):
        if found.written >= best.written:
            best = found
    return best


def has_checkpoint(data: bytes) -> bool:
    """Whether the contents of a first file have counts that can be read."""
    return bool(_checkpoints(data))


def _checkpoints(data: bytes) -> list[Checkpoint]:
    """The counts in the two slots, as far as they can be read."""
    known = []
    for turn in range(2):
        slot = data[turn * SLOT : (turn + 1) * SLOT].rstrip(b"\0 ")
        try:
            known.append(read_record(slot, Checkpoint, "of the counts", "of a recording"))
        except UnknownRecordError:
            continue  # never written, or half written when the process died
    return known


@dataclass(slots=True)
class Lines:
    """The lines of the second file by their kind.

    ``named`` is whether the first one names the job, as in every recording; ``unknown`` is how many cannot be read.
    """

    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    events: dict[int, EventRecord] = field(default_factory=dict)
    programs: dict[str, ProgramRecord] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)
    end: State = field(default_factory=lambda: State())
    build: Build = field(default_factory=lambda: Build())
    lockstep: bool = False
    named: bool = False
    unknown: int = 0

    def add(self, told: Line) -> None:
        """Add a line; raises ``KeyError`` or ``ValueError`` if it is none."""
        if "job" in told:
            self.named = True
        elif "members" in told:
            self.members[told["group"]] = tuple(told["members"])
        elif "event" in told:
            int(told["digest"], 16)
            self.events[told["event"]] = {
                "group": told["in"],
                "digest": told["digest"],
                "function": told.get("function"),
                "filename": told.get("filename"),
                "line": told.get("line"),
                "aside": told.get("aside", False),
            }
        elif "end" in told:
            self.end = told["end"]
        elif "versions" in told:
            self.build = {"versions": told["versions"], "layers": told.get("layers", {})}
        elif "lockstep" in told:
            self.lockstep = told["lockstep"]
        elif "omitted" in told:
            self.omitted.append(told["omitted"][:100])
        elif "program" in told:
            self.programs[told["program"]] = unpacked_program(told["record"])


def _lines(path: Path) -> Lines:
    return read_lines(path.with_suffix(".events"))


def read_lines(events: Path) -> Lines:
    """The lines of the second file; none if there is no readable file."""
    lines = Lines()
    try:
        texts = events.read_bytes().splitlines(keepends=True)
    except OSError:
        return lines
    for number, text in enumerate(texts, 1):
        try:
            lines.add(read_record(text, Line, str(number), "of a recording"))
        except (UnknownRecordError, ValueError, KeyError):
            # Half written when the process died, if it is the last one; of another release; or damaged.
            lines.unknown += text.endswith(b"\n")
    return lines


def read_programs(path: Path) -> dict[str, ProgramRecord]:
    """The records behind the digests in a recording."""
    return _lines(path).programs


def read_end(path: Path) -> State:
    """How the program of a recording ended; nothing if that is not known."""
    return _lines(path).end


def read_build(path: Path) -> Build:
    """What the process of a recording ran with; nothing if that is not known."""
    return _lines(path).build


def read_lockstep(path: Path) -> bool:
    """Whether a recording is of lockstep mode, where the last call may not have been dispatched."""
    return _lines(path).lockstep


def read_omitted(path: Path) -> list[str]:
    """What is not in a recording because it was full, in words."""
    return _lines(path).omitted
