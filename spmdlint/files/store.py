"""A folder of documents that may be lost at any time: what is wrong with one, or with the folder, is a miss.

Documents are JSON behind a line with their digest. One is written beside its place and then moved there, so that runs
at the same time see the old one or the new one. A full or read-only disk keeps nothing, and nobody is told.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

FOLDER = ".spmdlint_cache"
SUFFIX = ".json"
TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is spmdlint's cache; it may be deleted.\n"
MAX_BYTES = 64 << 20
"""What the documents of one folder may take together; the oldest go first."""


class Store:
    """Documents by name, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> Any:
        """A document; None where there is none that is whole."""
        try:
            digest, _, body = (self.folder / f"{name}{SUFFIX}").read_bytes().partition(b"\n")
            return json.loads(body) if digest.decode() == _digest(body) else None
        except (OSError, ValueError, RecursionError):
            return None

    def write(self, name: str, document: object) -> None:
        """Keep a document, and drop the oldest ones where the folder holds too much."""
        body = json.dumps(document, separators=(",", ":")).encode()
        partial = self.folder / f"{name}.{os.getpid()}.partial"
        try:
            self._prepare()
            try:
                partial.write_bytes(_digest(body).encode() + b"\n" + body)
                partial.replace(self.folder / f"{name}{SUFFIX}")
            finally:
                partial.unlink(missing_ok=True)
            self._prune()
        except OSError:
            return

    def _prepare(self) -> None:
        """Make the folder, and tell version control and backups to leave it alone."""
        if (self.folder / TAG).exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
        (self.folder / TAG).write_text(_TAG_TEXT, encoding="utf-8")

    def _prune(self) -> None:
        kept = [(entry.stat(), entry.path) for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX)]
        kept.sort(key=lambda each: -each[0].st_mtime_ns)
        total = 0
        for status, path in kept:
            total += status.st_size
            if total > MAX_BYTES:
                Path(path).unlink(missing_ok=True)


def clear(folder: Path) -> bool:
    """Delete a store with all that it made; False where the folder is none, and then nothing is touched."""
    if not (folder / TAG).is_file():
        return False
    for entry in list(os.scandir(folder)):
        if entry.name.endswith((SUFFIX, ".partial")) or entry.name in (".gitignore", TAG):
            Path(entry.path).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        return True  # somebody keeps something else there
    return True


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
