"""The normal end of a process: publish it, and hold until all have ended or a process proves a divergence.

Without the hold, a process that leaves its loop early would enter JAX's shutdown barrier, and its peers would wait in
a call that never comes. It runs before JAX's own exit, also at ``jax.distributed.shutdown``.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.report import Report, diverged
from spmdlint.runtime_checks.sentences import name_processes
from spmdlint.runtime_checks.store import StoreLostError
from spmdlint.runtime_checks.waiting import ASK_EVERY, SILENT

if TYPE_CHECKING:
    from spmdlint.runtime_checks.session import Session

TICK = 0.05
SLOWEST_TICK = 0.5
BEARS = 10.0  # seconds to wait for a store that does not answer: others wait for this process's end state
ELASTIC_HOLD = 10.0  # for jobs that continue when processes die
LONGEST_HOLD = 300.0  # as long as JAX's shutdown barrier would hold a process
INTERRUPT_SPREADS = 5.0  # seconds until an interrupt of the whole job has reached all processes
ASKED = 64  # processes that an interrupted one asks about


@dataclass(slots=True)
class Outcome:
    """How the program ended in this process: "finished", "raised" or "interrupted", with place and message."""

    state: str = "finished"
    site: Site | None = None
    detail: str | None = None


def close(session: Session, outcome: Outcome) -> None:
    """Publish how this process ended and wait for the others; does not return if the job has diverged."""
    limit = None
    while True:
        try:
            if _may_close(session):
                _close(session, outcome)
            return
        except StoreLostError:
            limit = limit or time.monotonic() + BEARS
            if time.monotonic() > limit:
                return  # no process is left to agree with
            time.sleep(SLOWEST_TICK)


def _may_close(session: Session) -> bool:
    """Whether all have joined, and the checks see what they should."""
    if session.joining is not None and not session.follow(session.joining.wait_at_the_end()):
        return False
    session.health.look()
    return session.active


def leave_quietly(session: Session) -> None:
    """Publish that this process makes no more calls, without waiting for the others."""
    try:
        if session.background is not None:
            session.background.finish("finished", {})
        else:
            session.put_quiet()
        session.exchange.put_state(session.end_state("finished", None, None))
    except StoreLostError:
        return


def _close(session: Session, outcome: Outcome) -> None:
    session.setup.publish()
    _leave_if_diverged(session)
    if session.background is not None:
        session.background.journal.drain()  # the last calls belong to how this process ended
    state = _publish(session, outcome)
    if outcome.state == "interrupted":
        if not _interrupted_alone(session, state):
            return
        outcome = Outcome("raised", outcome.site, outcome.detail)
        state = _publish(session, outcome)
    ended = _all_ended(session, outcome, state)
    if ended is None:
        return
    _leave_if_diverged(session)
    report = _last_look(session, outcome, ended)
    if report is not None:
        session.ending.declare(report)
        _leave_if_diverged(session)
    _note_quiet(session, ended)
    if session.background is not None:
        if session.ending.verdict is None:
            session.exchange.put_over()
        session.wake_all()


def _publish(session: Session, outcome: Outcome) -> dict[str, Any]:
    """Publish how this process ended."""
    state = session.end_state(outcome.state, outcome.site, outcome.detail)
    session.record_end(state)
    if session.folder is not None:
        session.folder.put_state(session.me, state)
    if session.background is not None:
        session.background.finish(outcome.state, state)
    else:
        session.put_quiet()
    session.exchange.put_state(state)
    return state


def _interrupted_alone(session: Session, state: dict[str, Any]) -> bool:
    """Whether others still run after an interrupt of the whole job would have reached them: they then wait in vain."""
    if session.count > ASKED:
        return False
    ended: dict[int, dict[str, Any]] = {session.me: state}
    until, tick = time.monotonic() + INTERRUPT_SPREADS, TICK
    while time.monotonic() < until:
        _collect(session, ended)
        if len(ended) == session.count or not session.active or session.interrupted():
            return False
        time.sleep(tick)
        tick = min(tick * 1.2, SLOWEST_TICK)
    return True


def _all_ended(session: Session, outcome: Outcome, state: dict[str, Any]) -> dict[int, dict[str, Any]] | None:
    """Hold until all have ended; returns how each ended, or None if this process need not check that."""
    began, tick = time.monotonic(), TICK
    ended: dict[int, dict[str, Any]] = {session.me: state}
    background, life = session.background, Life(session)
    while len(ended) < session.count:
        if not session.active:
            return None
        if background is None or session.ending.verdict is not None:
            _leave_if_diverged(session)
        held = time.monotonic() - began
        if session.interrupted() or held > _longest(session, outcome):
            return None
        if background is None or _closes(session):
            _collect(session, ended)
            life.look([process for process in range(session.count) if process not in ended])
        elif background.over:
            return None
        else:
            life.look([0])
        if len(ended) < session.count:
            time.sleep(tick)
            tick = min(tick * 1.2, SLOWEST_TICK)
    return ended


class Life:
    """Whether the checks of those that this process waits for still answer: if not, they may have ended unseen."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._every = max(ASK_EVERY, session.count / ASKED)
        self._heard = time.monotonic()
        self._due = self._heard + self._every

    def look(self, processes: Sequence[int]) -> None:
        """Ask one of the processes from time to time; steps aside after a long silence."""
        session, now = self._session, time.monotonic()
        if now < self._due or not processes or session.options.rehearsal:
            return
        if session.lives(processes[0]):
            self._heard = time.monotonic()
        self._due = time.monotonic() + self._every
        silence = time.monotonic() - self._heard
        if silence > SILENT / ASK_EVERY * self._every:
            session.stand_down(
                f"the runtime checks are off at the end of this job: those of process {processes[0]} have not "
                f"answered for {silence:.0f} s, and how it ended is not known."
            )


def _collect(session: Session, ended: dict[int, dict[str, Any]]) -> None:
    told = session.exchange.states() if session.background is not None else None
    for process in range(session.count):
        if process in ended or (told is not None and process not in told and session.folder is None):
            continue
        found = session.ended(process)
        if found is not None:
            ended[process] = found


def _longest(session: Session, outcome: Outcome) -> float:
    """How long to hold: JAX's own barrier has a bound, and background mode must not exceed it."""
    if session.background is not None and not session.options.rehearsal:
        return ELASTIC_HOLD if is_elastic() else LONGEST_HOLD
    return LONGEST_HOLD if outcome.state == "raised" else math.inf


def is_elastic() -> bool:
    """Whether the job goes on without processes that have died."""
    return bool(getattr(getattr(sys.modules.get("jax"), "config", None), "jax_enable_recoverability", False))


def _closes(session: Session) -> bool:
    """Whether this process collects how all ended: the first one, or under a launcher the first that is alive."""
    folder = session.folder
    return all(folder is not None and folder.gone(process) is not None for process in range(session.me))


def _leave_if_diverged(session: Session) -> None:
    ending = session.ending
    if ending.look() is None:
        return
    if session.options.on_divergence == "report":
        ending.tell()
    else:
        ending.leave()


def _last_look(session: Session, outcome: Outcome, ended: dict[int, dict[str, Any]]) -> Report | None:
    """Checks that are possible only when all have ended."""
    if any(one["state"] == "raised" for one in ended.values()):
        for process in ended:
            report = session.setup.compare_with(process)
            if report is not None:
                return report
    if session.background is not None:
        report = session.background.leader.last_look(ended)
        if report is not None:
            return report
    dead = {process: one for process, one in ended.items() if one["state"] == "died"}
    if dead and outcome.state == "raised":
        # An exception after a peer's death is a consequence of it.
        return _after_death(session, ended, dead)
    return None


def _after_death(session: Session, ended: dict[int, dict[str, Any]], dead: dict[int, dict[str, Any]]) -> Report:
    processes = {process: session.ended_report(process, one) for process, one in ended.items()}
    words = "; ".join(f"process {process} was {one.get('detail')}" for process, one in sorted(dead.items()))
    others = name_processes(set(ended) - set(dead))
    message = f"{name_processes(dead)} died ({words}), and {others} could not continue."
    return diverged("missing", message, None, processes, "died")


def _note_quiet(session: Session, ended: dict[int, dict[str, Any]]) -> None:
    _note_unequal(session, ended, "quiet", "which has no collective", "That is harmless.")
    unknown = "of which it is not known whether it communicates"
    _note_unequal(session, ended, "undecided", unknown, "Look there first if something hangs or differs.")


def _note_unequal(session: Session, ended: dict[int, dict[str, Any]], counted: str, which: str, then: str) -> None:
    names = sorted({name for one in ended.values() for name in one.get(counted) or {}})
    for name in names:
        counts = {process: int((one.get(counted) or {}).get(name, 0)) for process, one in ended.items()}
        if len(set(counts.values())) > 1:
            words = ", ".join(f"process {process} {count} times" for process, count in sorted(counts.items())[:8])
            session.note(f"{name}, {which}, has unequal numbers of calls: {words}. {then}")
