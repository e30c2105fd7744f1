"""After a divergence that was only reported: a job that can no longer go on ends.

A process whose program has ended would stand in JAX's shutdown barrier for 300 s and then abort, because another waits
for it in a parallel call that never completes. If no other process moves any more, all end with one status. The same
barrier would wait for a process that its backend aborts, then or while the others already wait.
"""

from __future__ import annotations

import time
from typing import Any

from spmdlint.runtime_checks.agreement.others import OtherProcesses
from spmdlint.runtime_checks.background.publishing import PROCESSES_A_SECOND
from spmdlint.runtime_checks.ending.closing import is_elastic
from spmdlint.runtime_checks.ending.declared import Ending
from spmdlint.runtime_checks.records import State, Where
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.sentences import name_processes
from spmdlint.runtime_checks.transport.job import Job
from spmdlint.runtime_checks.transport.listener import wake_many
from spmdlint.runtime_checks.transport.store import StoreLostError

STANDS = 20.0  # seconds at one line, with one stack and one number of calls, of all processes that still run
BETWEEN = 2.0
SHORTEST = 0.25
LONGEST = 300.0  # as long as JAX's shutdown barrier holds a process
ASKED = 64  # processes


def end_if_stuck(job: Job, ending: Ending, others: OtherProcesses, state: State) -> None:
    """Wait while the processes that still run move; ends all if they do not. ``state`` is how this process ended."""
    try:
        _wait_while_they_move(job, ending, others, state)
    except StoreLostError:
        if job.me and not job.options.rehearsal and not is_elastic():
            write_error(
                "spmdlint: the key-value store in process 0 does not answer any more, so that JAX's shutdown barrier "
                f"cannot complete: process {job.me} ends with status {job.options.exit_status}.\n"
            )
            ending.leave()


def _wait_while_they_move(job: Job, ending: Ending, others: OtherProcesses, state: State) -> None:
    exchange, began = job.exchange, time.monotonic()
    exchange.put_state(state)
    stands: dict[int, Any] = {}
    since, aborting = began, False
    while time.monotonic() - began < LONGEST:
        if exchange.marked("ending"):
            ending.leave()
        ended = exchange.states.all()
        running = [process for process in job.others if process not in ended][:ASKED]
        if not running:
            end_if_died(job, ending)
            return
        now = {process: _place(others.whereabouts(process)) for process in running}
        if None in now.values():
            return  # it is not known what they do
        if now != stands:
            stands, since = now, time.monotonic()
        elif time.monotonic() - since > STANDS:
            _end(job, ending, running)
        aborting = _rest(job, aborting)


def _rest(job: Job, aborting: bool) -> bool:
    """Rest until the next look, or until a process is aborted: process 0 takes the store along. Returns if one was."""
    until = time.monotonic() + BETWEEN
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, pause(job)))
        if not aborting and job.exchange.marked("aborting"):
            return True
    return aborting


def pause(job: Job) -> float:
    """Seconds between two looks whether a process is being aborted, each of which is one request to the store."""
    return min(BETWEEN, max(SHORTEST, job.count / PROCESSES_A_SECOND))


def _place(where: Where | None) -> tuple[Any, ...] | None:
    if where is None:
        return None
    return tuple(where.get("stack") or ()), tuple(sorted((where.get("counts") or {}).items()))


def end_if_died(job: Job, ending: Ending) -> None:
    """All have ended; JAX's shutdown barrier would still wait for one that its backend has aborted."""
    states = job.exchange.states.all()
    died = [process for process, told in states.items() if told.get("state") == "died" and process != job.me]
    if died and not is_elastic():
        ended = "did not end by itself" if len(died) == 1 else "did not end by themselves"
        why = f"{name_processes(died)} {ended}, so that JAX's shutdown barrier cannot complete"
        write_error(f"spmdlint: {why}: process {job.me} ends with status {job.options.exit_status}.\n")
        ending.leave()


def _end(job: Job, ending: Ending, running: list[int]) -> None:
    verb = "waits" if len(running) == 1 else "wait"
    write_error(
        f"spmdlint: process {job.me} has ended, and {name_processes(running)} {verb} for a parallel call that "
        f"cannot complete, at one line for {STANDS:.0f} s: the job ends with status {job.options.exit_status}.\n"
    )
    job.exchange.mark("ending")
    wake_many(job.exchange, running, {})
    ending.leave()
