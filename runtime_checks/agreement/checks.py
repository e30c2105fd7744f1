"""Whether this process is checked: until all have joined, while the checks are on, and once they have stepped aside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from spmdlint.runtime_checks.agreement.joining import Decision, Joining, close_door
from spmdlint.runtime_checks.agreement.this_process import ThisProcess
from spmdlint.runtime_checks.errors import ChecksFailedError, Guard
from spmdlint.runtime_checks.records import Aside, UnknownRecordError
from spmdlint.runtime_checks.reporting.printing import plain, write_error
from spmdlint.runtime_checks.transport.bounded import BlockedError, is_own_thread
from spmdlint.runtime_checks.transport.exchange import Job
from spmdlint.runtime_checks.transport.store import StoreLostError

MAX_NOTES = 100
LONGEST_REASON = 600
ASIDE = "aside"  # the state of a process that continues without checks


class StoodDownError(Exception):
    """The call goes on without an agreement.

    The checks are over, as after a verdict under the policy "report"; or an operation with its own time-out was waited
    for as long as it would wait itself.
    """


class Checks:
    """The checks of this process: ``active``, or ``why_inactive``; and the remarks that they have made.

    ``joining`` is there until it is decided whether the job is checked. ``broken`` is why a rehearsal has to fail.
    """

    def __init__(self, job: Job, own: ThisProcess) -> None:
        self._job = job
        self._own = own
        self.active = True
        self.why_inactive = "a divergence was reported"
        self.broken: str | None = None
        self.joining: Joining | None = None
        self.guard = Guard(self.failed)
        self.notes: list[str] = []

    def joins(self, *, wait: bool = False) -> bool:
        """Whether all processes are known to be checked; steps aside if it is decided that none is."""
        joining = self.joining
        if joining is None:
            return self.active
        decision = joining.wait() if wait else joining.look()
        return decision is not None and self.follow(decision)

    def follow(self, decision: Decision) -> bool:
        """Act on the decision of the job about its checks; returns whether it is checked."""
        self.joining = None
        if not decision.checked:
            words = f"the runtime checks are off in all processes: {decision.reason.rstrip('.')}. {decision.advice}"
            self.stand_down(words, tell=False)
        return decision.checked

    def failed(self, error: Exception) -> None:
        """The checks themselves failed: a rehearsal must not be reported as clean, and a job must not be harmed."""
        if isinstance(error, StoreLostError | UnknownRecordError | BlockedError):
            self.stand_down(f"the checks are off from now on. {error}")
            return
        words = f"The runtime checks failed with an internal error ({type(error).__name__}: {str(error)[:300]})"
        self.stand_down(f"{words}; they are off from now on.")

    def stand_down(self, reason: str, *, tell: bool = True, by_program: bool = False) -> None:
        """Stop comparing, say why once, and tell the others, which would wait for this process.

        A rehearsal must not be reported as clean: it fails, unless the program itself has ended the checks on some
        process. Raises :class:`ChecksFailedError` there, but in a thread of the checks the next call raises it.
        """
        if not self.active:
            return
        self.active = False
        self.why_inactive = plain(reason, LONGEST_REASON)
        write_error(f"spmdlint: {self.why_inactive}\n")
        if tell:
            words = f"process {self._job.me} continues without checks: {self.why_inactive}"
            self._tell_others({"reason": self.why_inactive if by_program else words, "by_program": by_program})
        if by_program:
            return
        if self._job.options.rehearsal:
            # Last: the exception may end this process, which is a divergence for who has not been told.
            self.broken = f"{self.why_inactive} Run with --mode off, and report this if it is not expected."
            self._own.journal.stop()  # each call on the fast path looks here first
        if not is_own_thread():
            self.raise_if_broken()

    def follow_aside(self, told: Aside, *, tell: bool = False) -> None:
        """Stop comparing because another process has, and has told all."""
        by_program, reason = bool(told.get("by_program")), str(told.get("reason"))
        words = reason if by_program else f"the checks are off from now on: {reason}"
        self.stand_down(words, tell=tell, by_program=by_program)

    def _tell_others(self, told: Aside) -> None:
        """Tell the others; where one way does not work, another may. Who sees the state finds the reason."""
        job = self._job
        ways: list[Callable[[], object]] = [
            lambda: close_door(job.store, told["reason"]),  # without effect where all have joined
            lambda: job.aside.put(told, "job", replace=False),
            lambda: job.put_state(self._own.end_state(ASIDE, None, self.why_inactive)),
        ]
        if job.options.mode == "background":
            ways.append(job.wake_all)
        folder = job.folder
        if folder is not None:
            ways.append(lambda: folder.states.put(job.me, self._own.end_state(ASIDE, None, self.why_inactive)))
        for way in ways:
            with suppress(Exception):
                way()

    def raise_if_broken(self) -> None:
        """In a rehearsal: the checks failed, so the program must not go on as if it were checked."""
        if self.broken is not None:
            raise ChecksFailedError(self.broken)

    def warn(self, text: str) -> None:
        """Keep a remark, and report it at once."""
        if self.note(text):
            write_error(f"spmdlint: {text}\n")

    def note(self, text: str) -> bool:
        """Keep a remark for the report, once; returns whether it is new."""
        is_new = text not in self.notes and len(self.notes) < MAX_NOTES
        if is_new:
            self.notes.append(text)
        return is_new
