"""The source lines around a place, from the program's own folders only.

A recording comes from other hosts, and a page may be passed on: a path in it must not bring in any other file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

AROUND = 2
MAX_BYTES = 4 << 20
MAX_LINE = 400


class Sources:
    """The files below some folders, as they were at the time of the job."""

    def __init__(self, folders: Sequence[Path], unchanged_since: float | None = None) -> None:
        self._folders = [folder.resolve() for folder in folders]
        self._unchanged_since = unchanged_since
        self._lines: dict[str, list[str]] = {}

    def around(self, filename: str | None, line: int | None) -> list[tuple[int, str]]:
        """The numbered lines around a line; none if the file is not there, or was changed since."""
        if not filename or not line:
            return []
        if filename not in self._lines:
            self._lines[filename] = self._read(Path(filename))
        lines = self._lines[filename]
        if not 0 < line <= len(lines):
            return []
        first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
        return [(number, lines[number - 1][:MAX_LINE]) for number in range(first, last + 1)]

    def _read(self, path: Path) -> list[str]:
        try:
            found = path.resolve()
            if found.suffix != ".py" or not any(found.is_relative_to(folder) for folder in self._folders):
                return []
            about = found.stat()
            if about.st_size > MAX_BYTES or (self._unchanged_since and about.st_mtime > self._unchanged_since):
                return []
            return found.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
