"""Holding an abort: a process that its backend aborts lives for some seconds more, so that it can say its last words.

Gloo, NCCL and CUDA end a process from a thread of their own, in the middle of C++, where no Python can run. But a
signal handler runs in that thread alone. So libc's own ``sleep`` is made the handler: it is called with the number of
the signal (6 for SIGABRT) and returns after so many seconds; then the abort goes on and ends the process as it would
have. Meanwhile the other threads run, and the watcher thread publishes and compares the last calls. The handler is
installed for one signal (SA_RESETHAND), so its disappearance tells the watcher thread that an abort has begun.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import weakref

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


def _known_here() -> bool:
    return sys.platform.startswith("linux") and ctypes.sizeof(ctypes.c_void_p) == 8


class AbortHold:
    """The handlers of the signals by which backends end a process, where the program has none of its own."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._begun: int | None = None
        if not _known_here():
            return
        self._libc = ctypes.CDLL(None)
        self._sleep = ctypes.cast(self._libc.sleep, ctypes.c_void_p).value
        with _WithoutFaulthandler() as possible:
            if possible:
                self._held = [number for number in SIGNALS if self._install(number)]
        _forget_after_fork(self)

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
        with _WithoutFaulthandler() as possible:
            for number in self._held if possible or not faulthandler.is_enabled() else ():
                if self._now(number).handler == self._sleep:
                    self._libc.sigaction(number, ctypes.byref(_Action()), None)
        self._held = []


class _WithoutFaulthandler:
    """Without Python's own handlers of these signals, which are put back on top: they print, and pass the signal on.

    False if that is not possible, because they may write somewhere else than to standard error.
    """

    def __enter__(self) -> bool:
        self._was_on = faulthandler.is_enabled()
        if not self._was_on:
            return True
        try:
            possible = sys.stderr.fileno() == 2 and "pytest" not in sys.modules
        except (AttributeError, OSError, ValueError):
            possible = False
        self._was_on = possible
        if possible:
            faulthandler.disable()
        return possible

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            faulthandler.enable()


def _forget_after_fork(hold: AbortHold) -> None:
    """A forked child has no watcher thread that could say anything."""
    known = weakref.ref(hold)

    def release() -> None:
        held = known()
        if held is not None:
            held.release()

    os.register_at_fork(after_in_child=release)
