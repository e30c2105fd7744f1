"""Failures that are reported to the user as one sentence, without a traceback."""

from __future__ import annotations

from pathlib import Path


class UsageError(Exception):
    """A request that the linter cannot carry out; the text says why, and what to do next."""


class AnalysisError(Exception):
    """An analysis failed on ``path``: raise this from the original error, so that the report names the file."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
