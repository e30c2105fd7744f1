"""The exceptions of the runtime checks."""

from __future__ import annotations

from spmdlint.runtime_checks.reporting.report import Report, as_text


class DivergenceError(RuntimeError):
    """The processes of the job disagree. ``report`` holds the verdict as data; the text of the error shows it."""

    def __init__(self, report: Report) -> None:
        super().__init__(as_text(report).removeprefix("spmdlint: "))
        self.report = report


class ChecksFailedError(RuntimeError):
    """The checks could not do their job in a rehearsal, so the run is not reported as clean."""
