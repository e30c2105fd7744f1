"""What the checks of one process are made of, for whatever compares, waits or ends."""

from __future__ import annotations

from dataclasses import dataclass

from spmdlint.runtime_checks.agreement.checks import Checks
from spmdlint.runtime_checks.agreement.declared import Ending
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.agreement.setup import Setup
from spmdlint.runtime_checks.agreement.this_process import ThisProcess
from spmdlint.runtime_checks.transport.exchange import Job


@dataclass(frozen=True, slots=True)
class Parts:
    """The job and the ways to the others, this process and what it knows of the others, and what is decided."""

    job: Job
    own: ThisProcess
    others: OtherProcesses
    checks: Checks
    ending: Ending
    setup: Setup
