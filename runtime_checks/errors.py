"""What the checks raise on purpose, and the guard: whatever else breaks in them, the program goes on as without them.

Every entry of the checks into a process of the program goes through :meth:`Guard.run`: a seam, a wrapper, a thread, the
start, the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from spmdlint.runtime_checks.owners import hide_frames
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import Report, as_text

P = ParamSpec("P")
T = TypeVar("T")


class DivergenceError(RuntimeError):
    """The processes of the job disagree. ``report`` holds the verdict as data; the text of the error shows it."""

    def __init__(self, report: Report) -> None:
        super().__init__(as_text(report).removeprefix("spmdlint: "))
        self.report = report


class ChecksFailedError(RuntimeError):
    """The checks could not do their job in a rehearsal, so the run is not reported as clean."""


class Guard:
    """Runs steps of the checks. ``failed`` decides what a failure means: it may raise :class:`ChecksFailedError`."""

    def __init__(self, failed: Callable[[Exception], object]) -> None:
        self._failed = failed

    def run(self, step: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | None:
        """The result of a step, or None if it failed."""
        try:
            return step(*args, **named)
        except ChecksFailedError:
            raise
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, DivergenceError):
                self.failed(error)
                return None
            hide_frames(error)
            raise error  # up to Python 3.10, a bare raise brings the frames back

    def failed(self, error: Exception) -> None:
        """Act on a failure, where even that may fail."""
        try:
            self._failed(error)
        except (DivergenceError, ChecksFailedError):
            raise
        except Exception as worse:
            write_error(f"spmdlint: the runtime checks failed ({type(error).__name__}, then {type(worse).__name__}).\n")
