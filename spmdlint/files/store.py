"""A folder of documents that may be lost at any time: any fault in a document, or in the folder, is a cache miss.

A document is compressed and preceded by its digest. It is written to a temporary file and then moved into place, so
that concurrent runs see the old one or the new one. On a full or read-only disk nothing is kept, silently.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spmdlint.config import Config

FOLDER = ".spmdlint_cache"
SUFFIX = ".kept"
TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is spmdlint's cache; it may be deleted.\n"
MAX_BYTES = 128 << 20
"""The most bytes of documents in one folder; the least recently used ones are deleted first."""
_DAY = 86_400
_DIGEST = hashlib.sha256().digest_size


def usual_folder(config: Config) -> Path | None:
    """Where the results of a project are kept unless the user says otherwise; None for a folder that is no project."""
    # If nothing defines the project, its folder may be a home folder, which the linter must not write to.
    return config.root / FOLDER if config.marked else None


class Store:
    """Documents by name, in one folder. ``writes``: whether new ones may be kept."""

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.folder = folder
        self._writes = writes
        self._wrote = False

    def read(self, name: str) -> bytes | None:
        """A document; None if there is no intact one."""
        path = self.folder / f"{name}{SUFFIX}"
        try:
            kept = path.read_bytes()
            if hashlib.sha256(kept[_DIGEST:]).digest() != kept[:_DIGEST]:
                return None
            if path.stat().st_mtime < time.time() - _DAY:
                path.touch()
            return zlib.decompress(kept[_DIGEST:])
        except (OSError, zlib.error, MemoryError):
            return None

    def write(self, name: str, document: bytes) -> None:
        """Keep a document."""
        if not self._writes:
            return
        body = zlib.compress(document, 1)
        partial = self.folder / f"{name}.{os.getpid()}.partial"
        try:
            if not self._wrote:
                self._prepare()
            try:
                partial.write_bytes(hashlib.sha256(body).digest() + body)
                partial.replace(self.folder / f"{name}{SUFFIX}")
            finally:
                partial.unlink(missing_ok=True)
        except OSError:
            return
        self._wrote = True

    def prune(self) -> None:
        """Delete the oldest documents if something was written and there are too many now."""
        if not self._wrote:
            return
        try:
            kept = [(entry.stat(), entry.path) for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX)]
            kept.sort(key=lambda each: -each[0].st_mtime_ns)
            total = 0
            for status, path in kept:
                total += status.st_size
                if total > MAX_BYTES:
                    Path(path).unlink(missing_ok=True)
        except OSError:
            return

    def _prepare(self) -> None:
        """Create the folder, and tell version control and backups to leave it alone."""
        if (self.folder / TAG).exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
        (self.folder / TAG).write_text(_TAG_TEXT, encoding="utf-8")


def clear(folder: Path) -> bool:
    """Delete a store with everything that it made; False, without touching anything, if the folder is not a store."""
    if not (folder / TAG).is_file():
        return False
    for entry in list(os.scandir(folder)):
        if entry.name.endswith((SUFFIX, ".partial")) or entry.name in (".gitignore", TAG):
            Path(entry.path).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        return True  # somebody keeps other files there
    return True
