"""Being woken: a thread that waits for a key of its own in the store, so that nobody has to ask again and again.

The service keeps what a wait needs until the key is set, even when the wait has timed out. So the key is set and
dropped after each time-out; what others want to say lies under other keys, and is read after that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from spmdlint.runtime_checks.exchange import Exchange
from spmdlint.runtime_checks.store import StoreLostError

WAIT = 30.0  # seconds of one wait
PAUSE = 2.0  # seconds after the store did not answer


class Listener:
    """Calls ``on_word`` in its own thread whenever this process was woken, and from time to time."""

    def __init__(self, exchange: Exchange, on_word: Callable[[], None]) -> None:
        self._exchange = exchange
        self._on_word = on_word
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spmdlint-listen", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread: one that sits in a read when the interpreter ends aborts it."""
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._exchange.wake_self()
            except StoreLostError:
                time.sleep(0.05)
            self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._exchange.sleep(WAIT)
            except StoreLostError:
                self._stop.wait(PAUSE)
            if not self._stop.is_set():
                self._on_word()
