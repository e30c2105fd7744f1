"""A report on demand: a signal requests it, even while the main thread is blocked inside XLA."""

from __future__ import annotations

import signal
import time

from spmdlint.runtime_checks.reporting.printing import write_error
from spmdlint.runtime_checks.watching.signalpipe import SignalPipe, can_register

PIECES_COME_WITHIN = 0.02  # seconds between two writes of faulthandler, which take microseconds
SETTLED_LOOKS = 10  # whoever sends signals all the time is answered, too


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
        self._pipe: SignalPipe | None = None
        found = getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
        if found is None and name != "off":
            write_error(f"spmdlint: there is no signal {name}: reports on demand are off.\n")
        if found is None or name == "off" or not can_register():
            return
        self._number: int = found
        known = signal.getsignal(found)
        if known is signal.SIG_DFL or isinstance(known, _Aside):
            self._pipe = SignalPipe(found, chain=False)

    def asked(self) -> bool:
        """Whether a report was requested since the last look."""
        if self._pipe is None or not self._pipe.arrived():
            return False
        for _ in range(SETTLED_LOOKS):  # a stack comes in many pieces, and the rest of it is no other request
            time.sleep(PIECES_COME_WITHIN)
            if not self._pipe.arrived():
                break
        return True

    def stop(self, words: str) -> None:
        """Answer with these words from now on, unless the program has set a handler of its own since."""
        pipe, self._pipe = self._pipe, None
        # Only the main thread can set a handler: without one, what the signal writes stays in the pipe.
        if pipe is not None and can_register() and pipe.close():
            signal.signal(self._number, _Aside(words))
            signal.siginterrupt(self._number, False)  # as faulthandler's: no system call of a library is cut short
