"""Lowering the texts of many files, and what is said of those that do not parse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spmdlint.files.nesting import too_deep
from spmdlint.program.summary import Summary
from spmdlint.program.syntax import python_tree
from spmdlint.program.trouble import Trouble
from spmdlint.program.workers import Progress, lower_all
from spmdlint.program.written import Written
from spmdlint.timings import Timings


def lower_files(
    texts: Mapping[Path, str], jobs: int | None, progress: Progress | None, timings: Timings
) -> dict[Path, Summary | Written | Trouble]:
    """The summary of each text, or what is wrong with it. ``jobs``: processes to use, None for what suits."""
    deep = {path: Trouble(*place, _DEEP) for path, text in texts.items() if (place := too_deep(text)) is not None}
    flat = {path: text for path, text in texts.items() if path not in deep}
    return {**deep, **lower_all(flat, jobs, progress, timings)}


def parses(text: str) -> bool:
    """Is it Python of the version that runs: much faster to ask than LibCST. Newer syntax is left to LibCST."""
    return python_tree(text) is not None


_DEEP = "It does not parse: too many brackets are nested inside each other here."
