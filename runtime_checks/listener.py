"""Being woken: a thread that waits for a key of its own in the store, so that nobody has to ask again and again.

The service keeps what a wait needs until the key is set, even when the wait has timed out. So the key is set and
dropped after each time-out, which are rare: of a thousand processes each costs the service something. What others want
to say lies under other keys, and is read after that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from spmdlint.runtime_checks.exchange import Exchange
from spmdlint.runtime_checks.store import StoreLostError

WAIT = 300.0  # seconds of one wait; and in a large job, where each costs the service something, for each process
WAIT_OF_EACH = 0.3
PAUSE = 2.0  # seconds after the store did not answer
FEW = 32  # processes that are woken one after the other
AT_ONCE = 16
ROUNDS = 3  # of waking those again for whom the store did not answer
BETWEEN_ROUNDS = 0.5  # seconds


class Listener:
    """Calls ``on_word`` in its own thread whenever this process was woken, with the word that was given."""

    def __init__(self, exchange: Exchange, on_word: Callable[[Mapping[str, Any]], None], processes: int = 1) -> None:
        self._exchange = exchange
        self._wait = max(WAIT, processes * WAIT_OF_EACH)
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
                word = self._exchange.sleep(self._wait)
            except StoreLostError:
                word = {}  # perhaps: whatever was said meanwhile is read when the store is back
                self._stop.wait(PAUSE)
            if word is not None and not self._stop.is_set():
                self._on_word(word)


def wake_many(exchange: Exchange, processes: Sequence[int], word: Mapping[str, Any]) -> None:
    """Wake the listening threads of other processes: several at once where there are many."""

    def is_left(process: int) -> bool:
        try:
            exchange.wake(process, word)
        except StoreLostError:
            return True
        return False

    for number in range(ROUNDS):
        if number:
            time.sleep(BETWEEN_ROUNDS)
        try:
            left = _at_once(is_left, processes) if len(processes) > FEW else list(map(is_left, processes))
        except RuntimeError:  # at its end the interpreter starts no threads
            left = list(map(is_left, processes))
        processes = [process for process, is_one in zip(processes, left, strict=True) if is_one]
        if not processes:
            return


def _at_once(is_left: Callable[[int], bool], processes: Sequence[int]) -> list[bool]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(is_left, processes))
