"""The end of the checks in a program that goes on: ``disable()``.

What background mode has not compared yet is compared, as at the end of a program, but the wait for the others has a
bound: they may still be computing, and this process may have work to do. If they never come here, the checks end in
all processes.
"""

from __future__ import annotations

import time

from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.ending.end import End
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.reporting.sentences import SWITCHED_OFF
from spmdlint.runtime_checks.transport.store import StoreLostError

WITHIN = 10.0  # seconds for the others to come to the same place
TICK = 0.05


class Leaving(End):
    """How this process leaves the checks, and goes on."""

    def leave(self, site: Site | None = None) -> None:
        """Publish that no more calls come, and compare what is not compared yet; acts on a divergence."""
        limit = time.monotonic() + WITHIN
        try:
            state = self._publish(site)
            if self._background is not None and self._has_joined(limit):
                self._compare(self._background, state, limit)
        except StoreLostError:
            return  # no process is left to agree with
        if not self._ending.acknowledged.is_set():  # what was raised before, the program has caught
            self._ending.act()

    def _publish(self, site: Site | None) -> State:
        if self._background is not None:
            self._background.journal.drain()
        self._setup.publish()
        state: State = {**self._own.end_state("finished", site, SWITCHED_OFF), "switched_off": True}
        self._tell("finished", state)
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
        ended = {self._job.me: state}
        compares = self._closes()
        while not (self._is_over() or background.over):
            late = time.monotonic() > limit
            if compares and not late:
                self._collect(ended)
            if compares and (late or len(ended) == self._job.count):
                report = None if late else self._set_up_differently(ended) or background.leader.last_look(ended)
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
