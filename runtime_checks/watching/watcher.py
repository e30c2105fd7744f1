"""The watcher thread: it answers for a blocked main thread, and ends the process if that one cannot."""

from __future__ import annotations

import threading
import time

from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.ending.lastwords import LastWords
from spmdlint.runtime_checks.records import Word
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import after_death, reported
from spmdlint.runtime_checks.reporting.sentences import count_of
from spmdlint.runtime_checks.transport.store import StoreLostError
from spmdlint.runtime_checks.watching.demand import Demand
from spmdlint.runtime_checks.watching.health import Health

TICK = 0.25
SETUP = 5  # intervals until a process checks again how another is set up
SELDOM = 20  # intervals until a process checks for messages without being woken
GRACE = {"exit": 1.0, "raise": 10.0}  # seconds for the main thread to act on a verdict itself
ENDS_WITHIN = 60.0  # seconds for the threads of a program that a DivergenceError has ended, such as a save in flight
PATIENCE = 30.0  # seconds for which this thread tolerates a store that does not answer
STOPS_WITHIN = 5.0  # seconds for the thread to end; one that never returns from the store is left behind
DEATH_GRACE = 3.0  # seconds for the main thread to notice a peer's death itself


class Watcher:
    """A daemon thread that never blocks for long, and is joined before the interpreter ends."""

    def __init__(self, parts: Parts, background: Background | None, health: Health, demand: Demand) -> None:
        self._job, self._own, self._others = parts.job, parts.own, parts.others
        self._checks, self._setup, self._ending = parts.checks, parts.setup, parts.ending
        self._background = background
        self._health = health
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spmdlint-watch", daemon=True)
        self._verdict_seen: float | None = None
        self._deaths: dict[int, float] = {}
        self._told_launcher = False
        self._demand = demand
        alone = parts.job.folder is None
        self._last_words = LastWords(parts, background) if background is not None and alone else None
        self._wake = threading.Event()
        self._word = self._asked_meanwhile = False
        self._others.meanwhile = self._answer_meanwhile
        self._asked = self._looked_at_setup = 0.0
        self._lost_since: float | None = None

    def start(self) -> None:
        self._thread.start()
        if self._last_words is not None:
            self._last_words.start()

    def wake(self) -> None:
        """Look now, not at the next tick."""
        self._wake.set()

    def told(self, word: Word) -> None:
        """Another process has something for this one to look for in the store."""
        self._word = self._asked_meanwhile = True
        if "abort" in word and self._background is not None:
            self._background.hasten()
        self._wake.set()

    def wait_for_abort(self) -> None:
        """Does not return if this process is being aborted: it must not end as if nothing had happened."""
        if self._last_words is not None:
            self._last_words.wait()

    def stop(self) -> None:
        """End the thread and wait for it: a read in progress at exit aborts the interpreter."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(STOPS_WITHIN)
        if self._last_words is not None:
            self._last_words.release()

    def _run(self) -> None:
        while True:
            self._wake.wait(self.rest())
            self._wake.clear()
            if self._stop.is_set():
                return
            self._checks.guard.run(self._step)
            if self._last_words is not None and not self._checks.active and self._ending.verdict is None:
                self._last_words.release()  # the checks have stepped aside: an abort ends the process at once

    def _step(self) -> None:
        try:
            self.look()
            self._lost_since = None
        except StoreLostError:  # if that lasts, the checks end
            if self._last_words is not None and self._last_words.begun:
                return
            now = time.monotonic()
            self._lost_since = self._lost_since or now
            if now - self._lost_since >= PATIENCE:
                raise
            self._stop.wait(1.0)

    def rest(self) -> float:
        """Seconds until the next look, if the thread is not woken."""
        due = self._checks.joining or self._background
        return TICK if due is None else min(TICK, due.rest())

    def look(self) -> None:
        """One look; called by the thread, or by a benchmark that drives many processes."""
        checks, ending, folder = self._checks, self._ending, self._job.folder
        if folder is not None and not self._told_launcher and folder.marked("where"):
            self._told_launcher = True
            folder.states.put(self._job.me, {**self._own.where(), **self._own.build()})
        self._health.look()
        if self._demand.asked():
            self._report()
        if checks.joining is not None and not checks.joins():
            return
        if self._background is not None:
            self._look_behind(self._background)
        elif not checks.active and ending.verdict is None:
            return  # no answer: others must not wait for a process without checks
        else:
            self._look_at_setup()
            self._others.answer(calls=checks.active)
            ending.look()
        if ending.verdict is not None:
            self._enforce()
        elif folder is not None:
            self._look_for_deaths()

    def _report(self) -> None:
        """Say on demand where all processes are, or what there is to say instead."""
        checks, verdict, background = self._checks, self._ending.verdict, self._background
        if verdict is not None:
            write_error(f"{verdict.title}: {verdict.message} {self._here()}\n")
        elif not checks.active:
            write_error(f"spmdlint: {checks.why_inactive.rstrip('.')}. {self._here()}\n")
        elif checks.joining is not None:
            write_error(f"spmdlint: not all processes have enabled the checks yet. {self._here()}\n")
        elif background is None:
            write_error(f"spmdlint: {self._here()} Background mode tells of all processes.\n")
        else:
            background.leader.report_on_demand()
        if background is not None:
            write_error(self._health.line())

    def _here(self) -> str:
        where = self._own.where()
        begun = count_of(sum(where["counts"].values()), "parallel call")
        return f"Process {self._job.me} is at {where['place'] or 'an unknown line'}, {begun} begun."

    def _look_behind(self, background: Background) -> None:
        """Background mode: processes with a message wake this one; if that fails, it checks by itself."""
        ending, now = self._ending, time.monotonic()
        word, self._word = self._word, False
        interval = background.cadence.interval
        if word or now - self._asked > SELDOM * interval:
            self._asked = now
            background.hear()
            ending.look()
        if ending.verdict is None:
            background.tick()
        if word:
            self._others.answer(calls=self._checks.active)
        if not self._setup.compared and now - self._looked_at_setup > SETUP * interval:
            self._looked_at_setup = now
            self._look_at_setup()

    def _answer_meanwhile(self) -> None:
        """Answer while this thread itself waits for answers; what else it was woken for is left to the next look."""
        if self._asked_meanwhile and threading.current_thread() is self._thread:
            self._asked_meanwhile = False
            self._others.answer(calls=self._checks.active)

    def _look_at_setup(self) -> None:
        """Compare with one process; if all do so, all pairs are compared."""
        self._setup.publish()
        report = self._setup.compare_with(0 if self._job.me else 1)
        if report is not None and self._checks.active:
            self._ending.declare(report)

    def _enforce(self) -> None:
        job, ending, now = self._job, self._ending, time.monotonic()
        if job.options.on_divergence == "report":
            ending.tell()
            self._checks.active = False
            return
        self._own.journal.stop()
        self._verdict_seen = self._verdict_seen or now
        late = now - self._verdict_seen > GRACE[job.options.on_divergence]
        if late and not (job.options.on_divergence == "raise" and ending.acknowledged.is_set()):
            ending.leave()
        if ending.uncaught_since is not None and now - ending.uncaught_since > ENDS_WITHIN:
            write_error(
                f"spmdlint: process {job.me} was ended by a DivergenceError {ENDS_WITHIN:.0f} s ago, and other threads "
                f"of the program still run, such as a save that waits for the others: it ends now.\n"
            )
            ending.leave()

    def _look_for_deaths(self) -> None:
        """A killed peer ends the job: the main thread may be blocked on it inside XLA."""
        job, own, now = self._job, self._own, time.monotonic()
        for process in job.others:
            if job.gone(process) not in (None, 0):
                self._deaths.setdefault(process, now)
        due = [process for process, seen in self._deaths.items() if now - seen > DEATH_GRACE]
        ended = self._others.ended_among(due)
        dead = {process: state for process, state in ended.items() if state["state"] == "died"}
        if not dead:
            return
        report = self._background.leader.judge(range(job.count)) if self._background is not None else None
        if report is None:
            processes = {process: self._others.ended_report(process, state) for process, state in dead.items()}
            last = own.ledger.last
            if last is not None:
                processes[job.me] = reported(last.placed(), "calling")
                processes[job.me].stack = own.where()["stack"]
            threads = {job.me: sorted(own.racing)} if own.racing else {}
            report = after_death(dead, "", last.index if last else None, processes, threads)
        self._ending.declare(report)
        self._ending.leave()
