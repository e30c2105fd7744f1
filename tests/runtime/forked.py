"""Starting the processes of a job without importing JAX anew in each: see :mod:`tests.runtime.forkserver`.

A process that is forked differs from one that Python starts in what the fork copies: the order of sets of strings is
that of the others, and so are the addresses of what exists already; the environment and the arguments in ``/proc`` are
those of the server. Tests about that, and some of each kind, ask for a ``cold`` start.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
LINUX = sys.platform.startswith("linux")
# Python reads these when it starts, as a process that is forked does.
READ_BY_BOTH = {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"}


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment can be forked and be the same."""
    read = {name for name in environment if name.startswith("PYTHON")}
    return LINUX and not os.environ.get("COLD_START") and read <= READ_BY_BOTH


class Forked:
    """A process that the server has forked, with the part of the interface of ``Popen`` that tests use."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> None:
        ours, theirs = os.pipe()
        self._status, status = os.pipe()
        told = {"words": list(words), "environment": dict(environment), "folder": str(folder or Path.cwd())}
        socket.send_fds(_server(), [json.dumps(told).encode()], [theirs, status])
        os.close(theirs)
        os.close(status)
        self.stdout: IO[str] = os.fdopen(ours, encoding="utf-8", errors="backslashreplace")
        self.returncode: int | None = None
        self.orphans: list[int] = []
        """The processes that this one has left behind, which do not run any more; known once it has ended."""
        self._told = b""
        self.pid = int(self._lines(1, None)[0])

    def poll(self) -> int | None:
        """The status, if the process has ended."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """The status, once the process and what it has left have ended."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
        return status

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """All the output, once the process has ended."""
        limit = None if timeout is None else time.monotonic() + timeout
        pieces = []
        while True:
            left = None if limit is None else max(limit - time.monotonic(), 0)
            if not select.select([self.stdout], [], [], left)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            piece = os.read(self.stdout.fileno(), 1 << 16)
            if not piece:
                break
            pieces.append(piece)
        self.stdout.close()
        self.wait(None if limit is None else max(limit - time.monotonic(), 0.1))
        return b"".join(pieces).decode(errors="backslashreplace"), None

    def kill(self) -> None:
        """End the process and its session."""
        if self.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            lines = self._lines(3, timeout)
            if len(lines) >= 3:
                self.returncode, self.orphans = int(lines[1]), list(map(int, lines[2].split()))
        return self.returncode

    def _lines(self, count: int, timeout: float | None) -> list[str]:
        """What the keeper has written, once that is so many lines."""
        limit = None if timeout is None else time.monotonic() + timeout
        while self._told.count(b"\n") < count:
            left = None if limit is None else max(limit - time.monotonic(), 0)
            if not select.select([self._status], [], [], left)[0]:
                break
            piece = os.read(self._status, 1024)
            if not piece:
                raise RuntimeError("The process that keeps a forked one has failed.")
            self._told += piece
        if self._told.count(b"\n") == 3 and self._status >= 0:
            os.close(self._status)
            self._status = -1
        return self._told.decode().split("\n")[:-1]


@functools.lru_cache(maxsize=1)
def _server() -> socket.socket:
    """The server of this process, started when it is first needed; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    source = "import sys\nsys.path[:] = filter(None, sys.path)\n"  # not the current folder
    source += (Path(__file__).parent / "forkserver.py").read_text()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "SPMDLINT_"))}
    # One thread: a process with several cannot be forked safely.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-c", source, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours
