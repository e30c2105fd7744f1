"""The end of the checks in a program that goes on: ``disable()``.

What background mode has not compared yet is compared, as at the end of a program, but the wait for the others has a
bound: they may still be computing, and this process may have work to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from spmdlint.runtime_checks.agreement.checks import Checks
from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.agreement.setup import Setup
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.ending.declared import Ending
from spmdlint.runtime_checks.recording.this_process import ThisProcess
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.transport.job import Job
from spmdlint.runtime_checks.transport.store import StoreLostError

WITHIN = 10.0  # seconds for the others to come to the same place
TICK = 0.05


class Leaving:
    """How this process leaves the checks. ``look`` looks whether they see what they should."""

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

    def leave(self) -> None:
        """Publish that no more calls come, and compare what is not compared yet; acts on a divergence."""
        limit = time.monotonic() + WITHIN
        try:
            state = self._publish()
            if self._background is not None and self._has_joined(limit):
                self._compare(self._background, state, limit)
        except StoreLostError:
            return  # no process is left to agree with
        if not self._ending.acknowledged.is_set():  # what was raised before, the program has caught
            self._ending.act()

    def _publish(self) -> State:
        if self._background is not None:
            self._background.journal.drain()
        else:
            self._own.publish_quiet(self._job.exchange)
        state: State = {**self._own.end_state("finished", None, None), "switched_off": True}
        if self._job.folder is not None:
            self._job.folder.put_state(self._job.me, state)
        if self._background is not None:
            self._background.finish("finished", state)
        self._job.exchange.put_state(state)
        return state

    def _has_joined(self, limit: float) -> bool:
        """Whether all are known to be checked, and the checks see what they should."""
        checks = self._checks
        while checks.joining is not None and not checks.joins():
            if not checks.active or time.monotonic() > limit:
                return False
            time.sleep(TICK)
        self._look()
        return checks.active

    def _compare(self, background: Background, state: State, limit: float) -> None:
        """The first process compares once all have left; the others stay for its questions."""
        self._setup.publish()
        ended = {self._job.me: state}
        compares = all(self._job.gone(process) is not None for process in range(self._job.me))
        while not (self._is_over() or background.over):
            late = time.monotonic() > limit
            if compares and not late:
                self._collect(ended)
            if compares and (late or len(ended) == self._job.count):
                report = None if late else background.leader.last_look(ended)
                if report is not None:
                    self._ending.declare(report)
                else:
                    self._job.exchange.put_over()  # who comes later need not wait for this process
                self._ending.wake_all()
                return
            if late:
                return
            time.sleep(TICK)

    def _is_over(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._ending.verdict is not None or not self._checks.active or self._job.interrupted()

    def _collect(self, ended: dict[int, State]) -> None:
        ended.update(self._others.ended_among(process for process in self._job.others if process not in ended))
