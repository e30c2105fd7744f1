"""The normal end of a process: publish it, and hold until all have ended or a process proves a divergence.

Without the hold, a process that leaves its loop early would enter JAX's shutdown barrier, and its peers would wait in
a call that never comes. It runs before JAX's own exit, also at ``jax.distributed.shutdown``.

How long it holds, and what follows, depends on how the program has ended. ``disable()`` is an end in a program that
goes on; after it, and after an interrupt, the checks are over in all processes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from spmdlint.runtime_checks.agreement.others import Life
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.calls.frames import Site
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.reporting.report import Report, after_death
from spmdlint.runtime_checks.reporting.sentences import OVER, name_processes
from spmdlint.runtime_checks.transport.store import StoreLostError

TICK = 0.05
SLOWEST_TICK = 0.5
BEARS = 10.0  # seconds to wait for a store that does not answer: others wait for this process's end state
SHORT_HOLD = 10.0  # for jobs that continue when processes die, and for a program that goes on without checks
LONGEST_HOLD = 300.0  # as long as JAX's shutdown barrier would hold a process


@dataclass(slots=True)
class Outcome:
    """How the program ended in this process, with place and message: finished, raised, disabled or interrupted."""

    state: str = "finished"
    site: Site | None = None
    detail: str | None = None


class Closing:
    """The end of this process's part in the job. ``look`` looks whether the checks see what they should."""

    def __init__(self, parts: Parts, background: Background | None, look: Callable[[], object]) -> None:
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._checks, self._setup, self._ending = parts.checks, parts.setup, parts.ending
        self._background = background
        self._look = look

    def close(self, outcome: Outcome) -> None:
        """Publish how this process ended and wait for the others; does not return if the job has diverged."""
        limit = None
        while True:
            try:
                self._close(outcome)
                return
            except StoreLostError:
                limit = limit or time.monotonic() + BEARS
                if time.monotonic() > limit:
                    return  # no process is left to agree with
                time.sleep(SLOWEST_TICK)

    def _close(self, outcome: Outcome) -> None:
        joining = self._checks.joining
        if joining is not None and not self._checks.follow(joining.wait_at_the_end()):
            return
        self._look()
        if not self._checks.active:
            return
        self._setup.publish()
        told = self._act_if_diverged(outcome)  # and caught, or only reported: nothing is left to compare
        self._own.journal.drain()  # the last calls belong to how this process ended
        hold = 0.0 if told else self._hold(outcome)
        if not hold and not told:
            self._end_checks(outcome)
        state = self._publish(outcome)
        ended = self._all_ended(outcome, state, hold) if hold else None
        if ended is None:
            return
        self._act_if_diverged(outcome)
        report = self._last_look(outcome, ended)
        if report is not None:
            self._ending.proclaim(report)  # to the others first: here it may be raised
        if not self._act_if_diverged(outcome) and self._background is not None:
            self._job.mark("over")
            self._job.wake_all()

    def _publish(self, outcome: Outcome) -> State:
        """Publish how this process ended, and record it if all its calls are in the recording."""
        state = self._own.end_state(outcome.state, outcome.site, outcome.detail)
        if self._checks.active and self._ending.verdict is None:
            self._own.journal.write({"end": state})  # without it, the program may have gone on, or been killed
        # What others may still ask comes first, and only then that this process has ended.
        if self._job.folder is not None:
            self._job.folder.states.put(self._job.me, {**state, **self._own.build()})
        if self._background is not None:
            self._background.finish(state)
        else:
            self._own.publish_quiet(self._job)
        self._job.put_state(state)
        return state

    def _end_checks(self, outcome: Outcome) -> None:
        """Tell the others that the checks are over."""
        at = f" at {outcome.site.short}" if outcome.site is not None else ""
        words = f"the runtime checks are off in all processes: process {self._job.me} {OVER[outcome.state]}{at}."
        self._job.aside.put({"reason": words, "by_program": True}, "job", replace=False)
        if self._background is not None:
            self._job.wake_all()

    def _all_ended(self, outcome: Outcome, state: State, hold: float) -> dict[int, State] | None:
        """Hold until all have ended; returns how each ended, or None if this process need not check that."""
        job, background = self._job, self._background
        began, tick = time.monotonic(), TICK
        ended = {job.me: state}
        life = Life(self._job, self._checks, self._others)
        while absent := [process for process in range(job.count) if process not in ended]:
            if not self._checks.active:
                return None
            if background is None or self._ending.verdict is not None:
                self._act_if_diverged(outcome)
            if time.monotonic() - began > hold:
                if outcome.state in OVER:
                    self._end_checks(outcome)
                return None
            # The first one collects how all ended in background mode, or under a launcher the first that is alive.
            if background is None or all(job.gone(process) is not None for process in range(job.me)):
                ended |= self._others.ended_among(absent)
                life.look([process for process in absent if process not in ended])
            elif background.over:
                return None
            else:
                life.look([0])
            if len(ended) < job.count:
                time.sleep(tick)
                tick = min(tick * 1.2, SLOWEST_TICK)
        return ended

    def _hold(self, outcome: Outcome) -> float:
        """How long to hold: JAX's own barrier has a bound, and background mode must not exceed it."""
        behind = self._background is not None
        if outcome.state in OVER:  # in lockstep, nothing is left to compare; after an interrupt, all end as they would
            return SHORT_HOLD if behind and outcome.state == "disabled" else 0.0
        in_job = behind and not self._job.options.rehearsal
        if outcome.state == "finished" and not in_job:
            return math.inf
        return SHORT_HOLD if in_job and is_elastic() else LONGEST_HOLD

    def _act_if_diverged(self, outcome: Outcome) -> bool:
        """Act on the verdict; if this returns, whether there is one."""
        ending = self._ending
        if ending.look() is None:
            return False
        if outcome.state == "disabled":  # the program goes on, so that this is as in a call
            if not ending.acknowledged.is_set():  # what was raised before, the program has caught
                ending.act()
        elif self._job.options.on_divergence == "report":
            ending.tell()
        else:
            ending.leave()
        return True

    def _last_look(self, outcome: Outcome, ended: dict[int, State]) -> Report | None:
        """Checks that are possible only when all have ended."""
        # A short program has not compared how processes are set up. In lockstep all look, and have compared those with
        # which they have made calls.
        raised = any(one["state"] == "raised" for one in ended.values())
        everyone = raised or self._background is not None
        for process in sorted(ended) if everyone else [0 if self._job.me else 1]:
            report = self._setup.compare_with(process)
            if report is not None:
                return report
        if self._background is not None:
            report = self._background.leader.last_look(ended)
            if report is not None:
                return report
        dead = {process: one for process, one in ended.items() if one["state"] == "died"}
        # An exception after a peer's death is a consequence of it. Otherwise JAX's shutdown barrier would wait 300 s
        # for one that never comes to it, and then abort: who ends by Python's exit has said so, of others only a
        # launcher knows. All have ended by now, so nothing is accused while a process still computes.
        waits = self._job.folder is not None and not is_elastic()
        if not dead or not (waits or outcome.state == "raised"):
            return None
        processes = {process: self._others.ended_report(process, one) for process, one in ended.items()}
        rest = set(ended) - set(dead)
        then = f"; {name_processes(rest)} {'waits' if len(rest) == 1 else 'wait'} in JAX's shutdown"
        if outcome.state == "raised":
            then = f", and {name_processes(rest)} could not continue"
        threads = {process: names for process, one in ended.items() if (names := one.get("threads"))}
        return after_death(dead, then, None, processes, threads)


def is_elastic() -> bool:
    """Whether the job goes on without processes that have died."""
    return bool(getattr(getattr(sys.modules.get("jax"), "config", None), "jax_enable_recoverability", False))
