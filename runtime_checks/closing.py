"""The normal end of a process: tell it, and hold until all have ended or somebody proves a divergence.

Without the hold, a process that leaves its loop early would enter JAX's shutdown barrier, and its peers would wait in
a call that never comes. It runs before JAX's own exit, at ``jax.distributed.shutdown`` as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spmdlint.runtime_checks.frames import Site
from spmdlint.runtime_checks.options import DIVERGED_STATUS
from spmdlint.runtime_checks.report import Report, diverged, name_processes
from spmdlint.runtime_checks.store import StoreLostError

if TYPE_CHECKING:
    from spmdlint.runtime_checks.session import Session

TICK = 0.05
SLOWEST_TICK = 0.5
RAISED_HOLD = 300.0  # as long as JAX's shutdown barrier would hold a process that raised


@dataclass(slots=True)
class Outcome:
    """How the program ended in this process: "finished", "raised" or "interrupted", where and with what words."""

    state: str = "finished"
    site: Site | None = None
    detail: str | None = None


def close(session: Session, outcome: Outcome) -> None:
    """Tell how this process ended and wait for the others; does not return where the job has diverged."""
    try:
        _close(session, outcome)
    except StoreLostError:
        return  # nobody is left to agree with


def leave_quietly(session: Session) -> None:
    """Tell the others that this process makes no more calls, without waiting for them."""
    try:
        session.exchange.put_state(session.end_state("finished", None, None))
    except StoreLostError:
        return


def _close(session: Session, outcome: Outcome) -> None:
    session.setup.publish()
    _leave_if_diverged(session)
    state = session.end_state(outcome.state, outcome.site, outcome.detail)
    if session.folder is not None:
        session.folder.put_state(session.me, state)
    if session.background is not None:
        session.background.publish(outcome.state, state)
    session.exchange.put_state(state)
    if outcome.state == "interrupted":
        return
    began, tick = time.monotonic(), TICK
    ended: dict[int, dict[str, Any]] = {session.me: state}
    while len(ended) < session.count:
        _leave_if_diverged(session)
        if session.interrupted() or (outcome.state == "raised" and time.monotonic() - began > RAISED_HOLD):
            return
        for process in range(session.count):
            if process not in ended and (told := session.ended(process)) is not None:
                ended[process] = told
        if len(ended) < session.count:
            time.sleep(tick)
            tick = min(tick * 1.2, SLOWEST_TICK)
    _leave_if_diverged(session)
    report = _last_look(session, outcome, ended)
    if report is not None:
        session.ending.declare(report)
        _leave_if_diverged(session)
    _note_quiet(session, ended)


def _leave_if_diverged(session: Session) -> None:
    ending = session.ending
    if ending.look() is None:
        return
    if session.options.on_divergence == "report":
        ending.tell()
    else:
        ending.leave(DIVERGED_STATUS)


def _last_look(session: Session, outcome: Outcome, ended: dict[int, dict[str, Any]]) -> Report | None:
    """What only shows when all have ended."""
    if any(one["state"] == "raised" for one in ended.values()):
        for process in ended:
            report = session.setup.compare_with(process)
            if report is not None:
                return report
    if session.background is not None:
        report = session.background.judge()
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
    message = f"{name_processes(dead)} died ({words}), and {others} could not go on."
    return diverged("missing", message, None, processes)


def _note_quiet(session: Session, ended: dict[int, dict[str, Any]]) -> None:
    names = sorted({name for one in ended.values() for name in one.get("quiet") or {}})
    for name in names:
        counts = {process: int((one.get("quiet") or {}).get(name, 0)) for process, one in ended.items()}
        if len(set(counts.values())) > 1:
            words = ", ".join(f"process {process} {count} times" for process, count in sorted(counts.items())[:8])
            session.note(f"{name}, which holds no collective, was called unequally: {words}. That is harmless.")
