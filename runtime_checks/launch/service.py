"""The job's coordination service in a separate process, so that it outlives every process of the job.

Its arguments are the address and the number of processes. It serves until its standard input ends, which it does when
the launcher ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
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
