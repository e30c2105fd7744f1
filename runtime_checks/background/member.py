"""Background mode: calls are recorded as they are made, published by the watcher thread, compared by one process.

Nothing waits for another process, and the main thread never talks to the store. A divergence is found after the fact,
even while the main threads hang in it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import msgspec

from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.background.leading import Leader
from spmdlint.runtime_checks.background.publishing import Cadence, Sample
from spmdlint.runtime_checks.calls.call import Call
from spmdlint.runtime_checks.calls.given import SOURCE, UNUSUAL, USUAL
from spmdlint.runtime_checks.calls.ledger import Group, Trail
from spmdlint.runtime_checks.recording.journal import ValuedCall
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.reporting.sentences import racing_threads
from spmdlint.runtime_checks.transport.bounded import BoundedLock

URGENT_WITHIN = 0.05  # seconds that a new program waits for publication before it is dispatched
SHORTEST_REST = 0.01
HURRY = 8.0  # seconds for which processes publish and look at once after one of them is being aborted


class Background:
    """The part of every member: recording, publishing, answering. ``leader`` compares, if this process is a leader."""

    def __init__(self, parts: Parts) -> None:
        self._job, self._own = job, own = parts.job, parts.own
        self._others = parts.others
        self._checks, self._ending = parts.checks, parts.ending
        own.ledger.on_new = self._new_group
        self.journal = own.journal
        self.journal.on_stop, self.journal.failed = self._stopped, parts.checks.guard.failed
        self.leader = Leader(parts, self)
        self.cadence = Cadence(job.me, job.count)
        self.over = False
        self._published_at: float | None = None
        self._published: dict[str, tuple[Any, ...]] = {}
        self._urgent, self._served = threading.Event(), threading.Event()
        self._lock = BoundedLock()
        self._hurry_until = 0.0
        self._no_calls = False

    def _new_group(self, group: Group) -> None:
        if self._job.me == group.processes[0]:
            group.trail = Trail()

    # Methods for the thread that makes the call.

    def made(self, call: Call) -> None:
        """Record a call that is not on the fast path; a new program is published before it runs."""
        program = call.program
        event, is_new = self.journal.event_of(program, call.site), not self._own.explained(program.digest)
        if is_new:
            self._own.explain(program, call)
        given = dict(call.given)
        if call.source is not None:
            given[SOURCE] = USUAL if call.source is (self._job.me == 0) else UNUSUAL
        self.journal.note_slowly(ValuedCall(event, given) if given else event)
        if is_new and program.value is None and self._checks.joining is None:  # each asserted value is new
            self._served.clear()
            self._urgent.set()
            self._job.wake_watcher()
            self._served.wait(URGENT_WITHIN)

    def _stopped(self) -> None:
        """There is a verdict or a failed rehearsal, on which the next call acts; or an abort, and no call is made."""
        while self._no_calls:
            time.sleep(1.0)
        self._checks.raise_if_broken()
        self._ending.act()

    # Methods for the watcher thread.

    def tick(self) -> None:
        """Number the recorded calls; publish and compare when it is time."""
        self.journal.drain()
        self._own.notice_threads()
        if self._own.racing:
            self._checks.warn(racing_threads({self._job.me: sorted(self._own.racing)}))
        if self.journal.overrun:
            self._checks.stand_down("calls are made faster than they can be counted; the checks are off from now on.")
        if not self._checks.active:
            return
        now = time.monotonic()
        urgent = self._urgent.is_set() or self.hurries
        if urgent or now >= self.cadence.publish_at:
            self._urgent.clear()
            self.publish()
        if urgent or now >= self.cadence.look_at:
            self.cadence.looked()
            self.leader.look(now)

    def stop_calls(self) -> None:
        """Hold every thread at its next call: this process is being aborted."""
        self._no_calls = True
        self.journal.stop()

    def hasten(self) -> None:
        """Publish and look without waiting for one's turn, for some seconds: a process is being aborted."""
        self._hurry_until = time.monotonic() + HURRY

    @property
    def hurries(self) -> bool:
        """Whether a process was aborted some seconds ago."""
        return time.monotonic() < self._hurry_until

    def rest(self) -> float:
        """Seconds until :meth:`tick` has something to do."""
        leads = any(group.trail is not None for group in self._own.ledger.groups())
        due = min(self.cadence.publish_at, self.cadence.look_at) if leads else self.cadence.publish_at
        return max(SHORTEST_REST, due - time.monotonic())

    def publish(self) -> None:
        """Publish this process's position for the processes that compare it."""
        with self._lock:
            changed = []
            for group in self._own.ledger.groups():
                sample = self.own_sample(group)
                said = (sample.count, sample.prefix, sample.given, sample.state, sample.call, sample.compiling)
                if self._published.get(group.key) != said and self._job.me in group.processes:
                    changed.append((group, sample, said))
            self.cadence.published(len(changed))
            for group, sample, said in changed:
                self._job.put_sample(group.key, msgspec.to_builtins(sample))
                self._published[group.key] = said
            self._published_at = time.monotonic()
        self._served.set()

    def published_age(self) -> float | None:
        """Seconds since this process last published, or saw that nothing is new; None if it never did."""
        return None if self._published_at is None else round(time.monotonic() - self._published_at, 1)

    def own_sample(self, group: Group) -> Sample:
        """The position of this process in a group, as numbered so far."""
        last = self._own.ledger.last
        return Sample(
            count=group.count,
            prefix=group.prefix,
            given=group.given,
            serial=self.journal.made,
            state=self._own.end.get("state", "running"),
            call=last.placed() if last is not None and last.program.processes == group.processes else None,
            compiling=self._own.compiling,
        )

    def hear(self) -> None:
        """Check whether all have ended, or a process has left the checks."""
        if self._job.marked("over"):
            self.over = bool(self._own.end)
        aside = self._job.aside.get("job") if self._checks.active else None
        if aside is not None:
            self._checks.follow_aside(aside)

    # Methods for the end.

    def finish(self, end: State) -> None:
        """Publish that no more calls will come."""
        self.journal.drain()
        self._own.end = end
        self.publish()
