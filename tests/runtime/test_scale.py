"""Many real clients of one coordination service: a divergence is declared, and every one of them hears of it."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).parents[2] / "benchmarks" / "scale.py"
MOST = 1024
THREADS = 6 * MOST  # in all processes of the test


def _threads_allowed() -> int:
    """How many threads this user and this container may have, as far as that is said."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    allowed = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    of_container = Path("/sys/fs/cgroup/pids.max")
    told = of_container.read_text().strip() if of_container.exists() else "max"
    return min(allowed, int(told)) if told.isdigit() else allowed


@pytest.mark.skipif(_threads_allowed() < THREADS, reason=f"{THREADS} threads are needed")
@pytest.mark.parametrize("clients", [128, pytest.param(MOST, marks=pytest.mark.long)])
def test_every_client_hears_of_a_divergence(clients: int) -> None:
    command = [sys.executable, str(SCALE), "--short", str(clients)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{clients} clients: verdict posted after" in done.stdout
