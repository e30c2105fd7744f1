"""Reading a recording: the calls of a process that are still there, the records of their programs, and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.recording import timing
from spmdlint.runtime_checks.recording.layout import CALL, CALLS, SLOT, START, TIMES, WORD, unpack_runs
from spmdlint.runtime_checks.recording.replay import Replay


def read(path: Path) -> list[list[Any]]:
    """The recorded calls of a process, oldest first, as rows of a history; [] if there is no readable file."""
    return _rows(path, _data(path))[1]


def read_timed(path: Path) -> list[tuple[float | None, list[Any]]]:
    """The recorded calls of a process, each with its approximate time, if known."""
    data = _data(path)
    first, rows = _rows(path, data)
    times = timing.times_of(range(first, first + len(rows)), timing.read_times(data, TIMES))
    return list(zip(times, rows, strict=True))


def _data(path: Path) -> bytes:
    """The contents of a file; nothing if it is not a recording."""
    try:
        data = path.read_bytes()
    except OSError:
        return b""
    return data if len(data) >= TIMES else b""


def _rows(path: Path, data: bytes) -> tuple[int, list[list[Any]]]:
    """The number of the first call of a process that is still there, and the rows from it on."""
    if not data:
        return 1, []
    written, groups = _checkpoint(data)
    lines = _lines(path)
    members, events = lines.members, lines.events
    calls = {low: number for low, number in CALL.iter_unpack(data[START:TIMES]) if number}
    known = [events[calls[at & WORD]] for at in _before(written, calls, events)]
    replay = Replay(members, groups)
    rows = replay.back(known)
    first = written - len(rows) + 1
    at = written + 1
    while calls.get(at & WORD) in events:
        rows.append(replay.on(events[calls[at & WORD]]))
        at += 1
    return first, rows


def _before(written: int, calls: Mapping[int, int], events: Mapping[int, Any]) -> list[int]:
    """The numbers of the calls up to a checkpoint that can still be read, oldest first."""
    first = written
    while first > 0 and calls.get(first & WORD) in events and written - first < CALLS:
        first -= 1
    return list(range(first + 1, written + 1))


def _checkpoint(data: bytes) -> tuple[int, dict[str, tuple[int, int]]]:
    best: tuple[int, dict[str, tuple[int, int]]] = (0, {})
    for turn in range(2):
        try:
            written, groups = json.loads(data[turn * SLOT : (turn + 1) * SLOT].rstrip(b"\0 "))
            found = {str(key): (int(count), int(prefix)) for key, (count, prefix) in groups.items()}
        except (ValueError, TypeError, AttributeError):
            continue  # never written, or half written when the process died
        if int(written) >= best[0]:
            best = (int(written), found)
    return best


@dataclass(slots=True)
class _Lines:
    """The lines of the second file by their kind."""

    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    events: dict[int, dict[str, Any]] = field(default_factory=dict)
    programs: dict[str, dict[str, Any]] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    def add(self, told: Mapping[str, Any]) -> None:
        """Add a line; raises ``KeyError``, ``TypeError`` or ``ValueError`` if it is none."""
        if "members" in told:
            self.members[str(told["group"])] = tuple(int(one) for one in told["members"])
        elif "event" in told:
            int(str(told["digest"]), 16)
            line = told.get("line")
            self.events[int(told["event"])] = {
                "group": str(told["in"]),
                "digest": str(told["digest"]),
                "function": _text(told.get("function")),
                "filename": _text(told.get("filename")),
                "line": line if isinstance(line, int) else None,
            }
        elif "end" in told:
            end = dict(told["end"])
            line = end.get("line")
            texts = {name: _text(end.get(name)) for name in ("state", "detail", "function", "filename")}
            callers = [one for one in end.get("callers") or () if isinstance(one, str)]
            self.end = {**texts, "line": line if isinstance(line, int) else None, "callers": callers}
        elif "omitted" in told:
            self.omitted.append(str(told["omitted"])[:100])
        elif "program" in told:
            record = dict(told["record"])
            self.programs[str(told["program"])] = {**record, "devices": unpack_runs(record.get("devices"))}


def _text(told: object) -> str | None:
    """A name in a recording, which comes from elsewhere; None for anything else."""
    return told if isinstance(told, str) else None


def _lines(path: Path) -> _Lines:
    lines = _Lines()
    try:
        texts = path.with_suffix(".events").read_text(errors="replace").splitlines()
    except OSError:
        return lines
    for text in texts:
        try:
            lines.add(json.loads(text))
        except (ValueError, KeyError, TypeError):
            continue
    return lines


def read_programs(path: Path) -> dict[str, dict[str, Any]]:
    """The records behind the digests in a recording."""
    return _lines(path).programs


def read_end(path: Path) -> dict[str, Any]:
    """How the program of a recording ended; nothing if that is not known."""
    return _lines(path).end


def read_omitted(path: Path) -> list[str]:
    """What is not in a recording because it was full, in words."""
    return _lines(path).omitted
