"""Starting the processes of a job without importing JAX anew in each, or a linter without its own modules.

See :mod:`tests.runtime.forkserver`. One server of each kind serves all workers of xdist.

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
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "FORK_SERVER_OF_THE_TESTS_"  # the variable that tells the processes of xdist where the server listens
Kind = Literal["jobs", "linters"]
"""What a server has imported: JAX and the checks, or the language server."""
LINUX = sys.platform.startswith("linux")
# Python reads these when it starts, as a process that is forked does.
READ_BY_BOTH = {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"}


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment can be forked and be the same."""
    read = {name for name in environment if name.startswith("PYTHON")}
    return LINUX and not os.environ.get("COLD_START") and read <= READ_BY_BOTH


class Forked:
    """A process that the server has forked, with the part of the interface of ``Popen`` that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        files: tuple[int, int, int] | None = None,
        kind: Kind = "jobs",
    ) -> None:
        """Without ``files``, there is no input, and all the output is in ``stdout``."""
        ours, theirs = os.pipe()
        self._status, status = os.pipe()
        told = {"words": list(words), "environment": dict(environment), "folder": str(folder or Path.cwd())}
        with (
            Path(os.devnull).open() as nothing,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
        ):
            server.connect(address(kind))
            given = files or (nothing.fileno(), theirs, theirs)
            socket.send_fds(server, [json.dumps(told).encode()], [*given, status])
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


def run(
    words: Sequence[str], folder: Path, given: bytes, environment: Mapping[str, str], kind: Kind = "linters"
) -> subprocess.CompletedProcess[bytes]:
    """Run Python with these arguments to its end, forked; what it wrote, as ``subprocess.run`` tells it."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        source.write(given)
        source.seek(0)
        forked = Forked(words, environment, folder, (source.fileno(), out.fileno(), error.fileno()), kind)
        forked.stdout.close()
        done = forked.wait()
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess([sys.executable, *words], done, out.read(), error.read())


def stand_in() -> list[str]:
    """The command of a process that stands in for a forked linter; the arguments of Python are to be added."""
    return [sys.executable, "-I", "-S", str(Path(__file__).parent / "standin.py"), address("linters")]


def serve_all(kind: Kind) -> None:
    """Start one server for this process and those that it will start."""
    os.environ[ADDRESS + kind] = _server(kind)


def address(kind: Kind) -> str:
    """Where the server listens."""
    return os.environ.get(ADDRESS + kind) or _server(kind)


@functools.lru_cache
def _server(kind: Kind) -> str:
    """The address of a server of this process, started when it is first needed; it ends with this one."""
    folder = tempfile.mkdtemp(prefix="spmdlint-forks-")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{folder}/server")
    listener.listen(128)
    lifeline, ours = os.pipe()
    source = "import sys\nsys.path[:] = filter(None, sys.path)\n"  # not the current folder
    source += (Path(__file__).parent / "forkserver.py").read_text()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "SPMDLINT_"))}
    # One thread: a process with several cannot be forked safely.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}
    with listener:
        server = subprocess.Popen(
            [sys.executable, "-c", source, str(listener.fileno()), str(lifeline), f"{folder}/server", kind],
            pass_fds=[listener.fileno(), lifeline],
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )
    os.close(lifeline)

    def end() -> None:
        os.close(ours)
        server.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    return f"{folder}/server"
