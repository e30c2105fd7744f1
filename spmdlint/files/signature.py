"""Whether a file has changed: judged by its status, and by its text if the status says that it may have."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from spmdlint.files.read import Source, Unreadable

Status: TypeAlias = tuple[int, ...]

_TICKS = 2_000_000_000
"""Nanoseconds within which a file may change twice and have the same times."""


def status(path: str | Path) -> Status | None:
    """Values that change with every change of a file; None if it is not a file."""
    try:
        found = os.stat(path)  # noqa: PTH116  (asked for thousands of files)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def settled(paths: Iterable[Path]) -> dict[Path, Status | None]:
    """The status of files before they are read, if it is old enough to reveal any later change."""
    now = time.time_ns()
    found = {path: status(path) for path in paths}
    return {path: s if s is not None and max(s[0], s[1]) < now - _TICKS else None for path, s in found.items()}


def digest(outcome: Source | Unreadable) -> bytes:
    """A digest of the result of reading a file."""
    text = outcome.text if isinstance(outcome, Source) else f"\0{outcome.row} {outcome.column} {outcome.message}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
