"""What is wrong with the files of a recording: a file that is empty or damaged is not the same as none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from spmdlint.runtime_checks.recording.layout import SIZE, START
from spmdlint.runtime_checks.recording.reading import has_checkpoint, read_lines
from spmdlint.runtime_checks.reporting.sentences import name_processes

SUFFIXES = (".ledger", ".events")


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
    return found or [*_faults_in_calls(ledger), *_faults_in_lines(events)]


def _unreadable(path: Path) -> str | None:
    """Why nothing can be read in a file, whatever is in it."""
    try:
        with path.open("rb") as file:
            return None if file.read(1) else "is empty"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _faults_in_calls(ledger: Path) -> list[str]:
    data = ledger.read_bytes()
    if len(data) < SIZE:
        return [f"{ledger.name} is cut short, or no recording ({len(data)} bytes)"]
    if data[:START].strip(b"\0") and not has_checkpoint(data):  # one of the two may be half written
        return [f"{ledger.name} is no recording"]
    return []


def _faults_in_lines(events: Path) -> list[str]:
    lines = read_lines(events)
    if not lines.named:
        return [f"the first line of {events.name} does not name its job"]
    count = lines.unknown
    return [f"{count} {'line' if count == 1 else 'lines'} of {events.name} cannot be read"] if count else []
