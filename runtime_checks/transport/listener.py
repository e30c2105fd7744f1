"""Wake-ups: a thread waits for its own key in the store, so that no process has to poll.

The service keeps the memory of a wait until the key is set, even when the wait has timed out. So the key is set and
deleted after each time-out. Time-outs are rare, because each costs the service something, and there may be a thousand
processes. The messages themselves are under other keys, and are read after the wake-up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from spmdlint.runtime_checks.records import Word
from spmdlint.runtime_checks.transport.exchange import Exchange

WAIT = 300.0  # seconds of one wait; longer in a large job, because each wait costs the service something
WAIT_OF_EACH = 0.3
STOPS_WITHIN = 5.0  # seconds for the thread to end; one that never returns from the store is left behind
PAUSE = 2.0  # seconds after the store did not answer


class Listener:
    """Calls ``on_word`` in its own thread whenever this process is woken, with the message."""

    def __init__(self, exchange: Exchange, on_word: Callable[[Word], None], processes: int = 1) -> None:
        self._exchange = exchange
        self._wait = max(WAIT, processes * WAIT_OF_EACH)
        self._on_word = on_word
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spmdlint-listen", daemon=True)

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread: a thread that is in a read when the interpreter exits aborts it."""
        self._stop.set()
        limit = time.monotonic() + STOPS_WITHIN
        while self._thread.is_alive() and time.monotonic() < limit:
            try:
                self._exchange.wake_self()
            except Exception:
                time.sleep(0.05)
            self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            word: Word | None
            try:
                word = self._exchange.sleep(self._wait)
            except Exception:
                word = {}  # a message may have come meanwhile: it is read when the store is back
                self._stop.wait(PAUSE)
            if word is not None and not self._stop.is_set():
                self._on_word(word)
