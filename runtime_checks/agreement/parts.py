"""What the checks of one process are made of, for whatever compares, waits or ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spmdlint.runtime_checks.agreement.checks import Checks
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.agreement.setup import Setup
from spmdlint.runtime_checks.recording.this_process import ThisProcess
from spmdlint.runtime_checks.reporting.report import Report
from spmdlint.runtime_checks.transport.job import Job


class StoodDownError(Exception):
    """A verdict was reported, and the policy is to continue without checks."""


class WaitedEnoughError(Exception):
    """An operation with its own time-out was waited for as long as it would wait itself."""


class Verdicts(Protocol):
    """The verdict of the job, which the first process that can prove one declares, and on which all act."""

    def settle(self, report: Report) -> None:
        """Declare a verdict to all processes and act on it, in a thread that makes calls."""

    def proclaim(self, report: Report) -> None:
        """Declare a verdict from another thread; the threads that make calls act on it."""

    def heed(self) -> None:
        """Act on a verdict that another process declared, if there is one."""

    def act(self) -> None:
        """Act on the verdict that is known here, if there is one."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The job and the ways to the others, this process and what it knows of the others, and what is decided."""

    job: Job
    own: ThisProcess
    others: OtherProcesses
    checks: Checks
    verdicts: Verdicts
    setup: Setup
