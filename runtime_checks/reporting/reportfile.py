"""The full report of a job in a file on this host, as text and as JSON, for the processes that only print one line."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.reporting.report import Report, as_text

MAX_WRITTEN = 8 << 20  # characters
KEPT = 32  # jobs whose reports stay in the folder for temporary files


def write_report_file(report: Report, job: str, folder: Path | None) -> Path | None:
    """Write the report for a job, once per host; returns the path of the text, None if it cannot be written.

    Without a ``folder`` it goes into one of this user's in the folder for temporary files.
    """
    try:
        where = folder if folder is not None else _own_folder()
        where.mkdir(parents=True, exist_ok=True)
        path = where / f"report-{job}.txt"
        if not path.exists():
            _put(path.with_suffix(".json"), json.dumps(report.as_data(), indent=2) + "\n")
            _put(path, as_text(report))
            if folder is None:
                _remove_old(where)
    except OSError:
        return None
    return path


def _own_folder() -> Path:
    """A folder that only this user can write: in a folder for all, another user may have made one of this name."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"spmdlint-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or (hasattr(os, "getuid") and found.st_uid != user) or found.st_mode & 0o022:
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def _remove_old(folder: Path) -> None:
    """Remove the oldest reports of a folder in which they would pile up."""
    reports = [entry for entry in os.scandir(folder) if entry.name.startswith("report-")]
    dated = sorted(((one.stat(follow_symlinks=False).st_mtime, one.path) for one in reports), reverse=True)
    for _, path in dated[2 * KEPT :]:  # each as text and as JSON
        Path(path).unlink(missing_ok=True)


def _put(path: Path, text: str) -> None:
    """Write a file at once and as a whole, readable by this user only, and without codes that a terminal obeys."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(
        os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", errors="replace"
    ) as file:
        file.write(plain(text, MAX_WRITTEN))
    scratch.replace(path)
