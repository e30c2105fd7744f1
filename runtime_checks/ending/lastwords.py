"""The last seconds of a process that its backend aborts: it tells the others, so that the calls of all are compared.

A backend often aborts because the processes made different calls, before anything was compared. The abort may also come
with the verdict or after it: the others hear of it all the same.
"""

from __future__ import annotations

import signal
import threading
import time

from spmdlint.runtime_checks.agreement.declared import hosts_service
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.ending.abort import AbortHold
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import ADVICE_ON, THREADS_RULE
from spmdlint.runtime_checks.reporting.sentences import name_processes, racing_threads
from spmdlint.runtime_checks.transport.bounded import OWN
from spmdlint.runtime_checks.transport.store import StoreLostError

TICK = 0.25  # seconds between two looks, each of which is three system calls
WITHIN = 5.0  # seconds for a verdict, less than the abort is held
STORE_WITHIN = 2.0  # seconds for the store to take the last words: a job's first process may have ended before
LINGER = 0.5  # seconds after the verdict and the last words, so that the others can still ask
LINGER_AS_HOST = 2.0  # the same for the process with the coordination service, without which nobody can ask
LOST = (
    "the calls of the processes could not be compared, because the key-value store in process 0 does not answer: look "
    "at process 0 first."
)
AGREED = (
    f"within {WITHIN:.0f} s no difference was found between the calls of the processes: see the messages above, and "
    "look at the network and the devices."
)
AGREED_AMONG_THREADS = (
    "That is the likely reason, as the backend may have run their calls in another order than they were counted in: "
    f"within {WITHIN:.0f} s no other difference was found between the calls of the processes."
)
LOST_AMONG_THREADS = f"{LOST[0].upper()}{LOST[1:]}"


class LastWords:
    """Used in background mode without a launcher, which does the same from the recordings.

    Its own thread looks whether an abort has begun and sees to the end; another one tells the rest of the job. Neither
    is the watcher thread, nor does one do both: each of the others may wait for a store that does not answer, or for a
    lock of the thread that aborts. Both are started before they are needed: none can be once the interpreter exits.
    """

    def __init__(self, parts: Parts, background: Background) -> None:
        self._job, self._own = parts.job, parts.own
        self._checks, self._ending = parts.checks, parts.ending
        self._background = background
        self._hold = AbortHold()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"{OWN}end", daemon=True)
        self._teller = threading.Thread(target=self._tell, name=f"{OWN}say", daemon=True)
        self._due = threading.Event()  # there is something to do for the thread that talks to the store
        self._told_others = threading.Event()
        self._lost = threading.Event()

    def start(self) -> None:
        """Start to look for an abort."""
        self._teller.start()
        self._thread.start()

    def release(self) -> None:
        """Nothing can be said any more: an abort ends the process at once."""
        self._over.set()
        self._due.set()
        self._hold.release()

    @property
    def begun(self) -> bool:
        """Whether this process is being aborted: it must not end in any other way."""
        return self._hold.begun() is not None

    def wait(self) -> None:
        """Does not return if this process is being aborted: it must not end as if nothing had happened."""
        while self.begun and self._thread.is_alive():
            time.sleep(0.1)

    def look(self) -> bool:
        """Say and do what is due if an abort has begun, and end the process then."""
        if not self.begun:
            return False
        self._due.set()
        try:
            self._checks.guard.run(self._wait_for_verdict)
        finally:  # whatever breaks
            self._hold.finish()
        return True

    def _watch(self) -> None:
        while not self._over.wait(TICK):
            if self.look():
                return

    def _tell(self) -> None:
        self._due.wait()
        number = self._hold.begun()
        if number is not None:
            self._checks.guard.run(self._say_last_words, signal.Signals(number).name)

    def _say_last_words(self, name: str) -> None:
        self._background.stop_calls()
        self._background.journal.drain()
        self._own.notice_threads()
        write_error(f"spmdlint: process {self._job.me} is being ended by {name}{self._where()}.\n")
        if self._checks.active or self._ending.verdict is not None:  # after a verdict, nothing is active any more
            self._tell_others(name)

    def _where(self) -> str:
        last = self._own.ledger.last
        if last is None:
            return ", before its first parallel call"
        site = f" at {last.site.short}" if last.site is not None else ""
        return f" after call {last.index} of {name_processes(last.program.processes)}, {last.program.function}{site}"

    def _tell_others(self, name: str) -> None:
        exchange = self._job.exchange
        try:
            detail = f"killed by {name}, with which its backend or a native library ended it"
            exchange.put_state(self._own.end_state("died", None, detail))
            self._background.hasten()
            if exchange.mark("aborting"):
                self._job.wake_others({"abort": self._job.me})
            self._told_others.set()
        except StoreLostError:
            self._lost.set()

    def _wait_for_verdict(self) -> None:
        checks, ending, began = self._checks, self._ending, time.monotonic()
        until = began + WITHIN
        while (now := time.monotonic()) < until and checks.active and ending.verdict is None:
            if self._lost.is_set() or (now > began + STORE_WITHIN and not self._told_others.is_set()):
                self._lost.set()
                break
            time.sleep(0.05)
        if ending.verdict is not None:
            ending.tell()  # the main thread may be the one that should have raised
            while not (self._told_others.is_set() or self._lost.is_set()) and time.monotonic() < began + STORE_WITHIN:
                time.sleep(0.05)
            time.sleep(LINGER_AS_HOST if hosts_service() else LINGER)
        elif checks.active:
            write_error(f"spmdlint: {self._why()}\n")

    def _why(self) -> str:
        """What there is to say without a verdict; that several threads make parallel calls comes first."""
        if not self._own.racing:
            return LOST if self._lost.is_set() else AGREED
        threads = racing_threads({self._job.me: sorted(self._own.racing)})
        found = LOST_AMONG_THREADS if self._lost.is_set() else AGREED_AMONG_THREADS
        return f"{threads} {found} {ADVICE_ON['threads']} (spmdlint rule {THREADS_RULE})"
