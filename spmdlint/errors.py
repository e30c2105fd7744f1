"""Failures that are told to the user as one sentence, without a traceback."""

from __future__ import annotations

from pathlib import Path


class UsageError(Exception):
    """The linter was asked for something that it cannot do; the text says what, and what to do next."""


class AnalysisError(Exception):
    """An analysis failed while it looked at ``path``: raise it from the original error so that a reader knows where."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
