"""Reading recordings: the calls of a process that are still there, numbered, its programs and end, and what is damaged.

A file that is empty or damaged is not the same as none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from spmdlint.runtime_checks.calls.ledger import after, before
from spmdlint.runtime_checks.recording.writing import (
    CALL,
    CALLS,
    SIZE,
    SLOT,
    START,
    WORD,
    Checkpoint,
    Line,
)
from spmdlint.runtime_checks.records import (
    MAX_VALUE,
    Build,
    EventRecord,
    Place,
    ProgramRecord,
    State,
    UnknownRecordError,
    read_record,
)
from spmdlint.runtime_checks.reporting.sentences import count_of, name_processes
from spmdlint.runtime_checks.transport.packing import unpack

SUFFIXES = (".ledger", ".events")


class Row(msgspec.Struct, frozen=True):
    """One call of a group: ``prefix`` is a digest of all its calls so far, ``others`` the counts of other groups.

    ``aside`` is whether another thread than the main one made it, and ``given`` a digest of what it is given.
    """

    group: str
    members: tuple[int, ...]
    index: int
    prefix: str
    digest: str
    function: str | None
    filename: str | None
    line: int | None
    others: Mapping[str, int]
    callers: tuple[str, ...] = ()
    aside: bool = False
    given: int = 0

    def place(self) -> Place:
        """The call and its lines, as reports name them."""
        place: Place = {"function": self.function, "filename": self.filename, "line": self.line}
        return {"index": self.index, **place, "callers": list(self.callers)}


def rows_of(
    events: Sequence[EventRecord],
    members: Mapping[str, Sequence[int]],
    ends: Mapping[str, tuple[int, int]],
    later: Sequence[EventRecord] = (),
    given: Mapping[tuple[str, int], int] | None = None,
) -> list[Row]:
    """Rows of the events that lead up to the count and the prefix of each group, and of those that come later.

    ``given`` are the digests of what calls are given, by their groups and numbers.
    """
    inside = {group: tuple(processes) for group, processes in members.items()}
    groups, first = dict(ends), len(events)
    while first > 0:
        event = events[first - 1]
        count, prefix = groups.get(event["group"], (0, 0))
        if count < 1:
            break
        groups[event["group"]] = (count - 1, before(prefix, count, int(event["digest"], 16)))
        first -= 1
    rows = []
    for event in (*events[first:], *later):
        key, digest = event["group"], event["digest"]
        count, prefix = groups.get(key, (0, 0))
        prefix = after(prefix, count, int(digest, 16))
        groups[key] = (count + 1, prefix)
        row = Row(
            group=key,
            members=inside.get(key, ()),
            index=count + 1,
            prefix=f"{prefix:016x}",
            digest=digest,
            function=event.get("function"),
            filename=event.get("filename"),
            line=event.get("line"),
            others={name: made for name, (made, _) in groups.items() if name != key},
            callers=tuple(event.get("callers") or ()),
            aside=event.get("aside", False),
            given=(given or {}).get((key, count + 1), 0),
        )
        rows.append(row)
    return rows


def read(path: Path) -> list[Row]:
    """The recorded calls of a process, oldest first, as rows of a history; [] if there is no readable file."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    if len(data) < SIZE:
        return []  # no recording
    written, groups = max(_checkpoints(data), key=lambda one: one.written, default=Checkpoint(0, {}))
    lines = read_lines(path)
    members, events = lines.members, lines.events
    calls = {low: number for low, number in CALL.iter_unpack(data[START:SIZE]) if number}
    first = written
    while first > 0 and calls.get(first & WORD) in events and written - first < CALLS:
        first -= 1
    last = written
    while calls.get(last + 1 & WORD) in events:
        last += 1
    known, later = (
        [events[calls[at & WORD]] for at in range(start + 1, end + 1)]
        for start, end in ((first, written), (written, last))
    )
    return rows_of(known, members, groups, later)


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

    ``unknown`` is how many cannot be read.
    """

    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    events: dict[int, EventRecord] = field(default_factory=dict)
    programs: dict[str, ProgramRecord] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)
    end: State = field(default_factory=lambda: State())
    build: Build = field(default_factory=lambda: Build())
    unknown: int = 0

    def add(self, told: Line) -> None:
        """Add a line; raises ``KeyError`` or ``ValueError`` if it is none."""
        if "members" in told:
            self.members[told["group"]] = tuple(told["members"])
        elif "event" in told:
            int(told["digest"], 16)
            self.members.setdefault(told["group"], ())
            self.events[told["event"]] = told
        elif "end" in told:
            self.end = told["end"]
        elif "versions" in told:
            self.build = {"versions": told["versions"], "layers": told.get("layers", {})}
        elif "omitted" in told:
            self.omitted.append(told["omitted"][:100])
        elif "program" in told:
            record = unpack(told["record"], MAX_VALUE)
            self.programs[told["program"]] = read_record(record, ProgramRecord, told["program"], "of a recording")


def read_lines(path: Path) -> Lines:
    """The lines of the second file of a recording; none if there is no readable file."""
    lines = Lines()
    try:
        texts = path.with_suffix(".events").read_bytes().splitlines(keepends=True)
    except OSError:
        return lines
    for number, text in enumerate(texts, 1):
        try:
            lines.add(read_record(text, Line, str(number), "of a recording"))
        except (UnknownRecordError, ValueError, KeyError):
            # Half written when the process died, if it is the last one; of another release; or damaged.
            lines.unknown += text.endswith(b"\n")
    return lines


def recorded_in(folder: Path) -> list[int]:
    """The processes of which a folder has a file."""
    return sorted({int(path.stem) for path in folder.iterdir() if path.suffix in SUFFIXES and path.stem.isdigit()})


def damaged_in(folder: Path) -> dict[int, list[str]]:
    """What is wrong with the files of each process, by the name of the file; processes without a fault are left out."""
    faults = {process: _faults(folder / f"{process}.ledger") for process in recorded_in(folder)}
    return {process: found for process, found in faults.items() if found}


def damage_sentences(damaged: Mapping[int, Iterable[str]]) -> list[str]:
    """A sentence on each recording that is damaged."""
    return [
        f"The recording of {name_processes([process])} is damaged: {'; '.join(faults)}."
        for process, faults in sorted(damaged.items())
    ]


def _faults(ledger: Path) -> list[str]:
    events = ledger.with_suffix(".events")
    found = [f"{path.name} {fault}" for path in (ledger, events) if (fault := _unreadable(path))]
    if found:
        return found
    data, lines = ledger.read_bytes(), read_lines(ledger)
    if len(data) < SIZE:
        found.append(f"{ledger.name} is cut short, or no recording ({len(data)} bytes)")
    elif data[:START].strip(b"\0") and not _checkpoints(data):  # one of the two may be half written
        found.append(f"{ledger.name} is no recording")
    if lines.unknown:
        found.append(f"{count_of(lines.unknown, 'line')} of {events.name} cannot be read")
    return found


def _unreadable(path: Path) -> str | None:
    """Why nothing can be read in a file, whatever is in it."""
    try:
        with path.open("rb") as file:
            return None if file.read(1) else "is empty"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
