"""Recordings as a trace for Chrome and Perfetto: one track per process, one slice per parallel call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from spmdlint.runtime_checks.recording.reading import read_timed
from spmdlint.runtime_checks.recording.replay import Row
from spmdlint.runtime_checks.reporting.sentences import name_processes

STEP = 1e-3  # seconds from one call to the next if times are unknown
LONGEST = 0.25  # maximum length of a slice in seconds: the duration of a call is not recorded
JOB = 1  # the "process" of the trace; its threads are the processes of the job


class Slice(TypedDict, total=False):
    """One event of a trace, in the form that Chrome has given it: times are in microseconds."""

    ph: str
    pid: int
    tid: int
    name: str
    cat: str
    ts: float
    dur: float
    args: Mapping[str, str | int]


class Trace(TypedDict):
    """A trace as JSON."""

    traceEvents: list[Slice]
    displayTimeUnit: str
    otherData: Mapping[str, str | float]


def trace(folder: Path) -> Trace:
    """The trace of all recordings in a folder, as JSON; without events if there is no recording."""
    files = {int(path.stem): path for path in folder.glob("*.ledger") if path.stem.isdigit()}
    timed = {process: found for process, path in sorted(files.items()) if (found := read_timed(path))}
    known = [when for found in timed.values() for when, _ in found if when is not None]
    start = min(known, default=0.0)
    events: list[Slice] = []
    for process, found in timed.items():
        meta: Slice = {"ph": "M", "pid": JOB, "tid": process}
        events.append({**meta, "name": "thread_name", "args": {"name": f"process {process}"}})
        events.append({**meta, "name": "thread_sort_index", "args": {"sort_index": process}})
        events += _slices(process, found, start)
    if events:
        events.insert(0, {"ph": "M", "pid": JOB, "name": "process_name", "args": {"name": "parallel calls"}})
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"began": start, "clock": "each process's own; a call lies between two recorded times"},
    }


def _slices(process: int, found: Sequence[tuple[float | None, Row]], start: float) -> list[Slice]:
    """The slices of a process, each up to the next call."""
    starts = _filled([when for when, _ in found], start)
    ends = [*starts[1:], starts[-1] + STEP]
    slices: list[Slice] = []
    for at, then, (_, row) in zip(starts, ends, found, strict=True):
        arguments: dict[str, str | int] = {
            "call": row.index,
            "of": name_processes(row.members),
            "line": f"{row.filename}:{row.line}" if row.filename else "unknown",
        }
        length = max(1e-6, min(then - at, LONGEST))
        slices.append(
            {
                "ph": "X",
                "pid": JOB,
                "tid": process,
                "name": str(row.function),
                "cat": row.group,
                "ts": round((at - start) * 1e6, 3),
                "dur": round(length * 1e6, 3),
                "args": arguments,
            }
        )
    return slices


def _filled(times: Sequence[float | None], start: float) -> list[float]:
    """Times that never decrease; unknown times are one step after the previous call."""
    first = next((number for number, when in enumerate(times) if when is not None), None)
    if first is None:
        return [start + number * STEP for number in range(len(times))]
    known = times[first] or start
    filled = [known - (first - number) * STEP for number in range(first)]
    for when in times[first:]:
        latest = filled[-1] if filled else known
        filled.append(max(latest, when) if when is not None else latest + STEP)
    return filled
