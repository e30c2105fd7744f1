"""The last calls of a process in a file that outlives it: a ring of fixed-length lines in mapped memory.

Writing a line is a copy into memory that the kernel keeps, so that a process may be killed in the next moment. Each
line is JSON, led by its own number. What the digests in it stand for is appended to a file beside it.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LINE = 512
LINES = 1024


class Recording:
    """The ring of one process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._written = 0
        self._programs = path.with_suffix(".programs")
        self._programs.unlink(missing_ok=True)
        with path.open("w+b") as file:
            file.truncate(LINE * LINES)
            self._map = mmap.mmap(file.fileno(), LINE * LINES)

    def write(self, row: list[Any]) -> None:
        """Put a call down, before it is dispatched; one whose line would be too long loses its place."""
        self._written += 1
        line = json.dumps([self._written, *row], separators=(",", ":")).encode()
        if len(line) >= LINE:
            line = json.dumps([self._written, *row[:6], None, None, {}], separators=(",", ":")).encode()[: LINE - 1]
        start = (self._written - 1) % LINES * LINE
        self._map[start : start + LINE] = line.ljust(LINE - 1) + b"\n"

    def write_program(self, digest: str, record: Mapping[str, Any]) -> None:
        """Put down what a digest stands for, once."""
        with self._programs.open("a") as file:
            file.write(json.dumps({"digest": digest, "record": record}) + "\n")


def read(path: Path) -> list[list[Any]]:
    """The recorded calls of a process, oldest first, without their numbers; [] where there is no readable file."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    rows = []
    for start in range(0, len(data), LINE):
        try:
            row = json.loads(data[start : start + LINE])
        except ValueError:
            continue  # never written, or half written when the process died
        if isinstance(row, list) and row and isinstance(row[0], int):
            rows.append(row)
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


def read_programs(path: Path) -> dict[str, dict[str, Any]]:
    """What the digests in a recording stand for."""
    try:
        lines = path.with_suffix(".programs").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        try:
            told = json.loads(line)
            found[str(told["digest"])] = dict(told["record"])
        except (ValueError, KeyError, TypeError):
            continue
    return found
