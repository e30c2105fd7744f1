"""What the runtime checks raise."""

from __future__ import annotations

from spmdlint.runtime_checks.report import Report, as_text


class DivergenceError(RuntimeError):
    """The processes of the job disagree. ``report`` holds the verdict as data; the text of the error shows it."""

    def __init__(self, report: Report) -> None:
        super().__init__(as_text(report).removeprefix("spmdlint: "))
        self.report = report


class ChecksFailedError(RuntimeError):
    """In a rehearsal the checks could not do their job, and say why rather than call the run clean."""
