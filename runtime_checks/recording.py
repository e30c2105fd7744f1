"""The last calls of a process in a file that outlives it: a ring of fixed-length lines in mapped memory.

Writing a line is a copy into memory that the kernel keeps, so that a process may be killed in the next moment.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from spmdlint.runtime_checks.ledger import Entry

LINE = 256
LINES = 1024


class Recording:
    """The ring of one process. Each line says its own number, so that a reader finds the newest."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._written = 0
        with path.open("w+b") as file:
            file.truncate(LINE * LINES)
            self._map = mmap.mmap(file.fileno(), LINE * LINES)

    def write(self, entry: Entry) -> None:
        """Put a call down, before it is agreed on and dispatched."""
        self._written += 1
        members = ",".join(map(str, entry.program.processes))
        words = f"{self._written} call {entry.index} of {members} {entry.program.function} {entry.site or '?'}"
        line = words.encode(errors="replace")[: LINE - 1].ljust(LINE - 1) + b"\n"
        start = (self._written - 1) % LINES * LINE
        self._map[start : start + LINE] = line


def read(path: Path) -> list[str]:
    """The recorded calls of a process, oldest first; [] where there is no readable file."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    lines = [data[start : start + LINE].decode(errors="replace").strip() for start in range(0, len(data), LINE)]
    numbered = [(int(line.split(" ", 1)[0]), line) for line in lines if line[:1].isdigit()]
    return [line for _, line in sorted(numbered)]
