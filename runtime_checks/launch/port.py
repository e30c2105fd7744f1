"""A port for a job's coordination service that no other job on this machine is given while this one runs."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
