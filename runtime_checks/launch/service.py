"""The process beside those of a job: the job's coordination service, so that it outlives them, and their guard.

Its arguments are the address, the number of processes and the folder of the run. It serves until its standard input
ends, which it does when the launcher ends, even by SIGKILL; a launcher that has cleaned up itself has ended it before.
The kernel ends the processes of a job with their launcher, but not what these have forked: that ends then, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.options import RUN_FOLDER_VARIABLE

HEARTBEAT_TIMEOUT = 3600  # the launcher detects deaths itself, and a stopped process may continue
FOR = 5.0  # seconds for which it looks again: what is being forked just now is not seen yet
AGAIN = 0.1


def main(arguments: list[str]) -> int:
    """Serve until the end of the launcher, which names the processes that it starts; then end these."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # these are for the launcher, whose end is what counts
    address, count, folder = arguments
    service = start(address, int(count))
    leaders = [int(line) for line in sys.stdin if line.strip().isdigit()]
    for _ in range(2):  # a process that was just being started has not had its environment yet
        end_all(folder, leaders)
        time.sleep(AGAIN)
    shutil.rmtree(folder, ignore_errors=True)
    del service
    return 0


def start(address: str, count: int) -> Any:
    """Start the service of this JAX version."""
    import jaxlib._jax  # importing all of jax would take a second longer

    return with_heartbeats(jaxlib._jax.get_distributed_runtime_service, HEARTBEAT_TIMEOUT, address, count)


def with_heartbeats(make: Callable[..., Any], timeout: int, *words: Any, **named: Any) -> Any:
    """A service or client that takes another one for dead after some seconds; how that is passed changed in JAX 0.7."""
    try:
        return make(*words, **named, heartbeat_timeout=timeout)
    except TypeError:
        return make(*words, **named, heartbeat_interval=10, max_missing_heartbeats=timeout // 10)


def members(folder: str, leaders: Iterable[int] = ()) -> set[int]:
    """The processes of a run (Linux): of the sessions of these leaders, or with its folder in their environment.

    A process inherits the environment also if it makes a session of its own; and the session also if it overwrites its
    environment, as programs do that change their title.
    """
    sessions, mark = set(leaders), os.fsencode(f"{RUN_FOLDER_VARIABLE}={folder}") + b"\0"
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            dead, session = status[0] in (b"Z", b"X"), int(status[3])
            if not dead and (session in sessions or mark in (entry / "environ").read_bytes() + b"\0"):
                found.add(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue  # it has ended, or belongs to another user
    return found - {os.getpid()}


def end_all(folder: str, leaders: Iterable[int] = ()) -> None:
    """End the processes of a run, until there are none."""
    limit = time.monotonic() + FOR
    while time.monotonic() < limit and (left := members(folder, leaders)):
        for number in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(AGAIN)


@contextmanager
def held_port() -> Iterator[int]:
    """A free TCP port of 127.0.0.1, kept from others until the job is over.

    gRPC binds with ``SO_REUSEPORT``: between "this port is free" and its use, a second job can be given the same one,
    both services then serve it, and a process may register with the other job. On Linux a socket that is bound so but
    does not listen lets the service bind beside it and receives nothing, while the kernel gives the port to nobody who
    asks for a free one. Elsewhere such a socket may be handed connections, and the port is only found.
    """
    with socket.socket() as holder:
        held = sys.platform.startswith("linux")
        try:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        except OSError:  # sandboxes exist that do not know it, and gRPC does without there
            held = False
        holder.bind(("127.0.0.1", 0))
        port = int(holder.getsockname()[1])
        if not held:
            holder.close()
        yield port
