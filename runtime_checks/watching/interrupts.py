"""An interrupt that the main thread cannot act on, because it is blocked inside XLA: Python's handler runs there only.

As for a report on demand, faulthandler's handler runs at once, in C, and then passes the signal on to Python's own.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType

from spmdlint.runtime_checks.watching.signalpipe import SignalPipe, can_register


class Interrupts:
    """Whether this process was interrupted and has not noticed yet; never if the program handles SIGINT itself."""

    def __init__(self) -> None:
        self._pipe: SignalPipe | None = None
        self._since: float | None = None
        self._stood: tuple[object, ...] = ()
        if can_register() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._pipe = SignalPipe(signal.SIGINT, chain=True)

    def held_for(self) -> float:
        """Seconds for which the main thread has stood where it was interrupted; 0 if it was not, or has moved since."""
        came, now = self._pipe is not None and self._pipe.arrived(), time.monotonic()
        if self._since is None and not came:
            return 0.0
        stands = main_position()
        if self._since is None:
            self._since, self._stood = now, stands
        elif stands != self._stood:
            self._since = None
            return 0.0
        return now - self._since

    def stop(self) -> None:
        """Leave the signal to Python alone, unless the program has set a handler of its own since."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()


def main_position() -> tuple[object, ...]:
    """Where exactly the main thread is, in all its frames."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    found: list[object] = []
    while frame is not None:
        found += [frame.f_code, frame.f_lasti]
        frame = frame.f_back
    return tuple(found)
