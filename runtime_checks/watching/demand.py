"""A report on demand: a signal requests it, even while the main thread is blocked inside XLA.

A Python signal handler would run only once the main thread is back in Python. faulthandler's runs at once, in C: it
writes a stack to a pipe, which the watcher thread reads. It stays when the checks are over, without an answer: whoever
still asks must not end the process by that.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time

from spmdlint.runtime_checks.reporting.printing import write_error

PIECES_COME_WITHIN = 0.1  # seconds for the writes of faulthandler, which take microseconds


class Demand:
    """The signal and its pipe; without effect if the program has its own handler for the signal.

    From the moment at which the checks are switched on, the signal does not end the process any more: what nobody reads
    yet waits in the pipe.
    """

    def __init__(self, name: str) -> None:
        self._read: int | None = None
        number = getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
        if number is None and name != "off":
            write_error(f"spmdlint: there is no signal {name}: reports on demand are off.\n")
        possible = hasattr(faulthandler, "register") and threading.current_thread() is threading.main_thread()
        if number is not None and possible and signal.getsignal(number) is signal.SIG_DFL:
            self._read, end = os.pipe()
            os.set_blocking(self._read, False)
            os.set_blocking(end, False)
            faulthandler.register(number, file=os.fdopen(end, "wb", 0), all_threads=False, chain=False)

    def asked(self) -> bool:
        """Whether a report was requested since the last look."""
        if not self._arrived():
            return False
        time.sleep(PIECES_COME_WITHIN)
        self._arrived()  # a stack comes in many pieces, and the rest of it is no other request
        return True

    def _arrived(self) -> bool:
        try:
            return self._read is not None and bool(os.read(self._read, 1 << 16))
        except BlockingIOError:
            return False

    def stop(self) -> None:
        """Answer no more."""
        read, self._read = self._read, None
        if read is not None:
            os.close(read)
