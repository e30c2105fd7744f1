"""A report on demand: a signal requests it, even while the main thread is blocked inside XLA.

A Python signal handler would run only once the main thread is back in Python. faulthandler's runs at once, in C: it
writes a stack to a pipe, which the watcher thread reads as the request.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable

from spmdlint.runtime_checks.ending.abort import c_handler
from spmdlint.runtime_checks.reporting.printing import write_error

PIECES_COME_WITHIN = 0.02  # seconds between two writes of faulthandler, which take microseconds
SETTLED_LOOKS = 10  # whoever sends signals all the time is answered, too


class PipeEnd:
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


class _Aside:
    """Python's handler of the signal while there are no checks: whoever still asks must not end the process by it.

    It runs once the main thread is back in Python; until then nothing happens.
    """

    def __init__(self, words: str) -> None:
        self._words = words

    def __call__(self, *_: object) -> None:
        write_error(f"spmdlint: {self._words}\n")


class Demand:
    """The signal and its pipe; without effect if the program has its own handler for the signal.

    From the moment at which the checks are switched on, the signal does not end the process any more: what nobody reads
    yet waits in the pipe, and when the checks are over, a sentence says so.
    """

    def __init__(self, name: str) -> None:
        self._number: int | None = None
        self._known: object = None  # Python's handler of the signal as it was found
        self._read = -1
        number = getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
        if name == "off" or not hasattr(faulthandler, "register"):
            return
        if number is None:
            write_error(f"spmdlint: there is no signal {name}: reports on demand are off.\n")
            return
        self._known = signal.getsignal(number)
        free = self._known is signal.SIG_DFL or isinstance(self._known, _Aside)
        if threading.current_thread() is not threading.main_thread() or not free:
            return
        self._read, end = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(end, False)
        file = PipeEnd(end)
        self._registered = weakref.ref(file)
        faulthandler.register(number, file=file, all_threads=False)
        self._handler = c_handler(number)
        self._number = number

    def asked(self) -> bool:
        """Whether a report was requested since the last look."""
        if not self._arrived():
            return False
        for _ in range(SETTLED_LOOKS):  # a stack comes in many pieces, and the rest of it is no other request
            time.sleep(PIECES_COME_WITHIN)
            if not self._arrived():
                break
        return True

    def _arrived(self) -> bool:
        """Whether anything was written to the pipe since the last look."""
        if self._number is None:
            return False
        try:
            return bool(os.read(self._read, 1 << 16))
        except BlockingIOError:
            return False

    def stop(self, words: str) -> None:
        """Answer with these words from now on, unless the program has set a handler of its own since."""
        number, self._number = self._number, None
        if number is None:
            return
        replaced = signal.getsignal(number) is not self._known or c_handler(number) != self._handler
        if self._registered() is not None and not replaced:
            if threading.current_thread() is not threading.main_thread():
                return  # only the main thread can set a handler: the signal has no effect
            faulthandler.unregister(number)
            signal.signal(number, _Aside(words))
            signal.siginterrupt(number, False)  # as faulthandler's: no system call of a library is cut short
        os.close(self._read)
