"""Calls that may never return, made so that the thread of the program that needs their result waits only so long.

Time in which this process does not run counts little: while it is stopped, by a signal, a debugger or a migration,
nothing can answer it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
OWN = "spmdlint-"  # the beginning of the names of this package's own threads
MOST_BLOCKED = 4
BLOCKED_AFTER = 10.0  # seconds, beyond its own time-out, after which a request counts as one that never returns
SLICE = 0.25  # seconds: a wait that was to take these counts as that much, however late this process wakes up
SETTLES_WITHIN = 1.0  # seconds for a request whose result is no longer wanted; most last a quarter of a second


def in_slices(wait: Callable[[float], bool], within: float) -> bool:
    """Whether what is waited for comes in time; ``wait`` waits for it for at most so many seconds."""
    left = within
    while not wait(min(SLICE, left)):
        left -= SLICE
        if left <= 0:
            return False
    return True


class BlockedError(RuntimeError):
    """A call did not return in time."""


def is_own_thread() -> bool:
    """Whether this is a thread of the checks, which may block without harm."""
    return threading.current_thread().name.startswith(OWN)


class BoundedLock:
    """A lock that is not waited for longer than a request to the store: another thread may hold it and never return."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if is_own_thread():
            self._lock.acquire()
        elif not in_slices(lambda seconds: self._lock.acquire(timeout=seconds), BLOCKED_AFTER):
            raise BlockedError(f"another thread of the checks has been at work for more than {BLOCKED_AFTER:.0f} s")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _make(call: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # it is raised in the thread that waits
        done.set_exception(error)
    finally:
        del done  # a cycle through the frames of an error would keep the arguments of the program's call alive


def _comes(done: Future[T], within: float) -> bool:
    return bool(wait([done], within).done)


class Bounded:
    """Makes calls in daemon threads. One that never returns is left alone; after some of them, no more are made."""

    def __init__(self) -> None:
        self._idle: SimpleQueue[SimpleQueue[tuple[Callable[[], Any], Future[Any]]]] = SimpleQueue()
        self._blocked = 0
        self._start()  # now: none can be started any more when the interpreter exits

    def run(self, call: Callable[[], T], within: float) -> T:
        """The result of a call; raises :class:`BlockedError` after ``within`` seconds."""
        if is_own_thread():
            return call()
        if self._blocked >= MOST_BLOCKED:
            raise BlockedError("earlier calls have not returned")
        if self._idle.empty():
            try:
                self._start()
            except RuntimeError:
                return call()
        done: Future[T] = Future()
        self._idle.get().put((call, done))
        try:
            in_time = in_slices(partial(_comes, done), within)
        except BaseException:
            # An interrupt: the thread that still makes the call would abort the process if the interpreter exits.
            _comes(done, SETTLES_WITHIN)
            raise
        if not in_time:
            self._blocked += 1
            raise BlockedError(f"no answer within {within:.0f} s")
        try:
            return done.result()
        finally:
            del done  # for the same reason

    def _start(self) -> None:
        inbox: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        threading.Thread(target=self._serve, args=(inbox,), name=f"{OWN}store", daemon=True).start()
        self._idle.put(inbox)

    def _serve(self, inbox: SimpleQueue[tuple[Callable[[], Any], Future[Any]]]) -> None:
        while True:
            _make(*inbox.get())
            self._idle.put(inbox)
