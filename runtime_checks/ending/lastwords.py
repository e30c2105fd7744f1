"""The last seconds of a process that its backend aborts: it tells the others, so that the calls of all are compared.

A backend often aborts because the processes made different calls, before anything was compared. The abort may also come
with the verdict or after it: the others hear of it all the same.

Gloo, NCCL and CUDA end a process from a thread of their own, in the middle of C++, where no Python can run. But a
signal handler runs in that thread alone. So libc's own ``sleep`` is made the handler: it is called with the number of
the signal (6 for SIGABRT) and returns after so many seconds; then the abort goes on and ends the process as it would
have. Meanwhile the other threads run, and the calls are published and compared. The handler is installed for one signal
(SA_RESETHAND), so its disappearance tells that an abort has begun.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from spmdlint.runtime_checks.agreement.declared import hosts_service
from spmdlint.runtime_checks.agreement.parts import Parts
from spmdlint.runtime_checks.background.member import Background
from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.reporting.report import ADVICE_ON, THREADS_RULE
from spmdlint.runtime_checks.reporting.sentences import call_words, capitalized, name_processes, racing_threads
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
        self._said = threading.Event()  # it has done so, or can not
        self._lost = True

    def start(self) -> None:
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
        self._own.journal.drain()
        self._own.notice_threads()
        write_error(f"spmdlint: process {self._job.me} is being ended by {name}{self._where()}.\n")
        if self._checks.active or self._ending.verdict is not None:  # after a verdict, nothing is active any more
            with suppress(StoreLostError):
                self._tell_others(name)
        self._said.set()

    def _where(self) -> str:
        last = self._own.ledger.last
        if last is None:
            return ", before its first parallel call"
        return f" after call {last.index} of {name_processes(last.program.processes)}, {call_words(last.placed())}"

    def _tell_others(self, name: str) -> None:
        detail = f"killed by {name}, with which its backend or a native library ended it"
        self._job.put_state(self._own.end_state("died", None, detail))
        self._background.hasten()
        if self._job.mark("aborting"):
            self._job.wake_others({"abort": self._job.me})
        self._lost = False

    def _wait_for_verdict(self) -> None:
        checks, ending, until = self._checks, self._ending, time.monotonic() + WITHIN
        self._said.wait(STORE_WITHIN)
        while not self._lost and time.monotonic() < until and checks.active and ending.verdict is None:
            time.sleep(0.05)
        if ending.verdict is not None:
            ending.tell()  # the main thread may be the one that should have raised
            time.sleep(LINGER_AS_HOST if hosts_service() else LINGER)
        elif checks.active:
            write_error(f"spmdlint: {self._why()}\n")

    def _why(self) -> str:
        """What there is to say without a verdict; that several threads make parallel calls comes first."""
        if not self._own.racing:
            return LOST if self._lost else AGREED
        threads = racing_threads({self._job.me: sorted(self._own.racing)})
        found = capitalized(LOST) if self._lost else AGREED_AMONG_THREADS
        return f"{threads} {found} {ADVICE_ON['threads']} (spmdlint rule {THREADS_RULE})"


SIGNALS = tuple(int(getattr(signal, name)) for name in ("SIGABRT", "SIGBUS", "SIGSEGV") if hasattr(signal, name))
_SA_RESETHAND = 0x80000000 - (1 << 32)  # as a signed number


class _Action(ctypes.Structure):
    """``struct sigaction`` on Linux with 64 bits, in glibc and in musl."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class AbortHold:
    """The handlers of the signals by which backends end a process, where the program has none of its own."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._begun: int | None = None
        if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
            return
        self._libc = ctypes.CDLL(None)
        self._sleep = ctypes.cast(self._libc.sleep, ctypes.c_void_p).value
        with _without_faulthandler() as possible:
            if possible:
                self._held = [number for number in SIGNALS if self._install(number)]
        known = weakref.ref(self)

        def release() -> None:
            if (held := known()) is not None:
                held.release()

        os.register_at_fork(after_in_child=release)  # a child has no watcher thread that could say anything

    def _install(self, number: int) -> bool:
        if self._now(number).handler:
            return False  # the program's own
        action = _Action(handler=self._sleep, flags=_SA_RESETHAND)
        return not self._libc.sigaction(number, ctypes.byref(action), None) and self._now(number).handler == self._sleep

    def _now(self, number: int) -> _Action:
        """The action of a signal as the kernel has it; a handler of None is the default action."""
        action = _Action()
        self._libc.sigaction(number, None, ctypes.byref(action))
        return action

    def _has_come(self, number: int) -> bool:
        """Whether the handler was used: the kernel then sets the default action, but leaves the flags."""
        action = self._now(number)
        return not action.handler and bool(action.flags & _SA_RESETHAND)

    def begun(self) -> int | None:
        """The signal by which this process is being ended, or None: one system call for each signal."""
        if self._begun is None and self._held:
            self._begun = next((number for number in self._held if self._has_come(number)), None)
        return self._begun

    def finish(self) -> None:
        """End the process now, as the abort would have ended it."""
        if self._begun is not None:
            os.kill(os.getpid(), self._begun)

    def release(self) -> None:
        """Put the default actions back, except where the program has set a handler since."""
        if not self._held or self._begun is not None:
            return
        with _without_faulthandler() as possible:
            for number in self._held if possible or not faulthandler.is_enabled() else ():
                if self._now(number).handler == self._sleep:
                    self._libc.sigaction(number, ctypes.byref(_Action()), None)
        self._held = []


@contextmanager
def _without_faulthandler() -> Iterator[bool]:
    """Without Python's own handlers of these signals, which are put back on top: they print, and pass the signal on.

    False if that is not possible, because they may write somewhere else than to standard error.
    """
    if not faulthandler.is_enabled():
        yield True
        return
    possible = False
    with suppress(AttributeError, OSError, ValueError):
        possible = sys.stderr.fileno() == 2 and "pytest" not in sys.modules
    if possible:
        faulthandler.disable()
    try:
        yield possible
    finally:
        if possible:
            faulthandler.enable()
