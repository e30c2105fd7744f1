"""A signal that is noticed even while the main thread is blocked inside XLA.

A Python signal handler would run only once the main thread is back in Python. faulthandler's runs at once, in C: it
writes a stack to a pipe, which the watcher thread reads.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import weakref
from collections.abc import Callable

from spmdlint.runtime_checks.ending.abort import c_handler


def can_register() -> bool:
    """Whether this thread can set a handler, on this platform."""
    return hasattr(faulthandler, "register") and threading.current_thread() is threading.main_thread()


class SignalPipe:
    """The handler of one signal and its pipe. With ``chain``, the handler from before is called after it."""

    def __init__(self, number: int, *, chain: bool) -> None:
        self._number = number
        self._known = signal.getsignal(number)
        self._read, end = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(end, False)
        file = _PipeEnd(end)
        self._registered = weakref.ref(file)
        faulthandler.register(number, file=file, all_threads=False, chain=chain)
        self._handler = c_handler(number)

    def arrived(self) -> bool:
        """Whether anything was written to the pipe since the last look."""
        try:
            return bool(os.read(self._read, 1 << 16))
        except BlockingIOError:
            return False

    def close(self) -> bool:
        """Close the pipe; returns whether the handler is removed: not if the program has set one of its own since."""
        ours = self._registered() is not None and c_handler(self._number) == self._handler
        free = ours and signal.getsignal(self._number) is self._known
        if free:
            faulthandler.unregister(self._number)
        os.close(self._read)
        return free


class _PipeEnd:
    """The file for faulthandler, which alone keeps it: it lives until this registration is undone or replaced."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        """For faulthandler."""
        return self._number

    def flush(self) -> None:
        """For faulthandler."""

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self._number)
