"""The job's coordination service in a separate process, so that it outlives every process of the job, and its port.

Its arguments are the address and the number of processes. It serves until its standard input ends, which it does when
the launcher ends.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spmdlint.runtime_checks.launch.cluster import die_with_launcher

HEARTBEAT_TIMEOUT = 3600  # the launcher detects deaths itself, and a stopped process may continue


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


def main(arguments: list[str]) -> int:
    """Serve until the launcher ends."""
    die_with_launcher()
    service = start(arguments[0], int(arguments[1]))
    sys.stdin.buffer.read()
    del service
    return 0


@contextmanager
def held_port() -> Iterator[int]:
    """A free TCP port of 127.0.0.1, kept from others until the job is over.

    gRPC binds with ``SO_REUSEPORT``: between "this port is free" and its use, a second job can be given the same one,
    both services then serve it, and a process may register with the other job. On Linux a socket that is bound so but
    does not listen lets the service bind beside it and receives nothing, while the kernel gives the port to nobody who
    asks for a free one. Elsewhere such a socket may be handed connections, and the port is only found.
    """
    with socket.socket() as holder:
        held = sys.platform.startswith("linux") and _shares(holder)
        holder.bind(("127.0.0.1", 0))
        port = int(holder.getsockname()[1])
        if not held:
            holder.close()
        yield port


def _shares(holder: socket.socket) -> bool:
    """Whether others can bind beside it: sandboxes exist that know no ``SO_REUSEPORT``, and gRPC does without there."""
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        return False
    return True
