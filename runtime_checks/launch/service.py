"""The job's coordination service in a separate process, so that it outlives every process of the job.

    python -m spmdlint.runtime_checks.launch.service ADDRESS COUNT

It serves until its standard input ends, which it does when the launcher ends.
"""

from __future__ import annotations

import sys
from typing import Any

from spmdlint.runtime_checks.launch.cluster import die_with_launcher

HEARTBEAT_TIMEOUT = 3600  # the launcher detects deaths itself, and a stopped process may continue


def start(address: str, count: int) -> Any:
    """Start the service of this JAX version; the names of its time-outs changed in 0.7."""
    import jaxlib._jax  # importing all of jax would take a second longer

    make: Any = jaxlib._jax.get_distributed_runtime_service
    try:
        return make(address, count, heartbeat_timeout=HEARTBEAT_TIMEOUT)
    except TypeError:
        return make(address, count, heartbeat_interval=10, max_missing_heartbeats=HEARTBEAT_TIMEOUT // 10)


def main(arguments: list[str]) -> int:
    """Serve until the launcher ends."""
    die_with_launcher()
    service = start(arguments[0], int(arguments[1]))
    sys.stdin.buffer.read()
    del service
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
