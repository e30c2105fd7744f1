"""How this process's part in a job ends, at the end of its program or before: what both have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spmdlint.runtime_checks.agreement.checks import Checks
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.agreement.setup import Setup
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.ending.declared import Ending
from spmdlint.runtime_checks.recording.this_process import ThisProcess
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.reporting.report import Report
from spmdlint.runtime_checks.transport.job import Job


class End:
    """The end of this process's part in the job. ``look`` looks whether the checks see what they should."""

    def __init__(
        self,
        job: Job,
        own: ThisProcess,
        others: OtherProcesses,
        checks: Checks,
        ending: Ending,
        setup: Setup,
        background: Background | None,
        look: Callable[[], object],
    ) -> None:
        self._job = job
        self._own = own
        self._others = others
        self._checks = checks
        self._ending = ending
        self._setup = setup
        self._background = background
        self._look = look

    def _tell(self, word: str, state: State) -> None:
        """Publish what others may still ask, and only then that this process has ended."""
        if self._job.folder is not None:
            self._job.folder.put_state(self._job.me, {**state, **self._own.build()})
        if self._background is not None:
            self._background.finish(word, state)
        else:
            self._own.publish_quiet(self._job.exchange)
        self._job.exchange.put_state(state)

    def _set_up_differently(self, processes: Iterable[int]) -> Report | None:
        """A report if another of these processes was set up differently; a short program has not been compared yet."""
        reports = (self._setup.compare_with(process) for process in processes)
        return next((report for report in reports if report is not None), None)

    def _closes(self) -> bool:
        """Whether this process collects how all ended: the first one, or under a launcher the first that is alive."""
        return all(self._job.gone(process) is not None for process in range(self._job.me))
