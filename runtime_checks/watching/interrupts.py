"""An interrupt that the main thread cannot act on, because it is blocked inside XLA: Python's handler runs there only.

As for a report on demand, faulthandler's handler runs at once, in C, and then passes the signal on to Python's own.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType

from spmdlint.runtime_checks.ending.abort import c_handler
from spmdlint.runtime_checks.watching.demand import PipeEnd

SETTLES = 0.5  # seconds after which a main thread that has not moved is blocked, and not just about to act


class Interrupts:
    """Whether this process was interrupted and has not noticed yet; never if the program handles SIGINT itself.

    ``blocked`` is called once the main thread is found not to act on an interrupt (True), and if it does later (False).
    """

    def __init__(self, blocked: Callable[[bool], object]) -> None:
        self._blocked = blocked
        self._read = -1
        self._since: float | None = None
        self._stood: tuple[object, ...] = ()
        self._told = False
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not usual or not hasattr(faulthandler, "register") or not _in_main_thread():
            return
        self._read, end = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(end, False)
        file = PipeEnd(end)
        self._registered = weakref.ref(file)
        faulthandler.register(signal.SIGINT, file=file, all_threads=False, chain=True)
        self._handler = c_handler(signal.SIGINT)

    def held_for(self) -> float:
        """Seconds for which the main thread has stood where it was interrupted; 0 if it was not, or has moved since."""
        came, now = self._arrived(), time.monotonic()
        if self._since is None and not came:
            return 0.0
        stands = main_position()
        if self._since is None:
            self._since, self._stood = now, stands
        elif stands != self._stood:
            self._since = None
            self._tell(False)
            return 0.0
        held = now - self._since
        if held > SETTLES:
            self._tell(True)
        return held

    def _tell(self, blocked: bool) -> None:
        if self._told != blocked:
            self._told = blocked
            self._blocked(blocked)

    def _arrived(self) -> bool:
        if self._read < 0:
            return False
        try:
            return bool(os.read(self._read, 1 << 16))
        except BlockingIOError:
            return False

    def stop(self) -> None:
        """Leave the signal to Python alone, unless the program has set a handler of its own since."""
        read, self._read = self._read, -1
        if read < 0:
            return
        ours = self._registered() is not None and c_handler(signal.SIGINT) == self._handler
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            faulthandler.unregister(signal.SIGINT)
        os.close(read)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def main_position() -> tuple[object, ...]:
    """Where exactly the main thread is, in all its frames."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    found: list[object] = []
    while frame is not None:
        found += [frame.f_code, frame.f_lasti]
        frame = frame.f_back
    return tuple(found)
