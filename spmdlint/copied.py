"""A forked copy of this process that does part of the work: it has everything that is known so far.

Copies are made only on Linux: elsewhere a forked process may not be able to use the system's libraries safely.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import IO


def may_be_copied() -> bool:
    """Whether a copy of this process can work: with threads, one of them may hold a lock when the copy is made.

    JAX has threads of its own, which Python does not count.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and "jaxlib" not in sys.modules


class Copy:
    """A copy of this process that returns bytes; leaving its block ends it.

    ``work`` runs only in the copy, and its changes have no effect here.

    Raises:
        OSError: the system has no room for another process.

    """

    def __init__(self, work: Callable[[], bytes]) -> None:
        reading, writing = os.pipe()
        try:
            self._process = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if self._process == 0:
            os.close(reading)
            _hand_back(work, writing)
        os.close(writing)
        self._answer: IO[bytes] = os.fdopen(reading, "rb")

    def __enter__(self) -> Copy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answer.close()
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)

    def result(self) -> bytes | None:
        """The bytes that the copy returns, once it has; None if it failed for any reason."""
        answer = self._answer.read()
        _, status = os.waitpid(self._process, 0)
        self._process = 0
        return answer if status == 0 else None


def _hand_back(work: Callable[[], bytes], writing: int) -> None:
    """Work, write the result and end, without output and without the interpreter's shutdown."""
    status = 1
    try:
        with os.fdopen(writing, "wb") as stream:
            stream.write(work())
        status = 0
    except BaseException:  # noqa: S110  (who waits for the answer hears of it by the status)
        pass
    finally:
        os._exit(status)
