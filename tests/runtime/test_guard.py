"""No process outlives the launcher: neither the job's own, nor what these have forked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runtime.jobs import HANGS, PRELUDE, rehearse

pytestmark = pytest.mark.usefixtures("whole_ending")

WORKERS = """
def work(own_session):
    child = os.fork()
    if not child:
        if own_session:
            os.setsid()
        while True:
            time.sleep(1)
    return child
print("WORKERS", work(False), work(True), os.getpid(), flush=True)
"""
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guard is for Linux")


def left(numbers: set[int]) -> set[int]:
    """Those that still run, given time to be ended; zombies wait for a parent, and run no more."""
    limit = time.monotonic() + HANGS
    while True:
        there = set()
        for number in numbers:
            try:
                status = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if status not in "ZX":
                there.add(number)
        if not there or time.monotonic() > limit:
            return there
        time.sleep(0.1)


@linux
def test_forked_workers_end_with_a_launcher_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(PRELUDE + WORKERS + "time.sleep(600)\n")
    words = [sys.executable, "-m", "spmdlint", "run", "-n", "2", "--", str(script)]
    scratch = {**os.environ, "TMPDIR": str(tmp_path)}
    launcher = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=scratch)
    started: set[int] = set()
    try:
        assert launcher.stdout is not None
        lines = (line for line in launcher.stdout if "WORKERS" in line)
        for _ in range(2):
            started.update(int(word) for word in re.findall(r"\d+", next(lines).partition("WORKERS")[2]))
        assert len(started) == 6
        launcher.kill()
        assert launcher.wait(HANGS) == -signal.SIGKILL
        assert left(started) == set()
        limit = time.monotonic() + HANGS
        while list(tmp_path.glob("spmdlint-run-*")) and time.monotonic() < limit:
            time.sleep(0.1)
        assert not list(tmp_path.glob("spmdlint-run-*"))
    finally:
        for number in started:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        launcher.kill()
        launcher.communicate()


@linux
def test_forked_workers_end_with_a_run_that_ends_by_itself(tmp_path: Path) -> None:
    run = rehearse(tmp_path, WORKERS, cold=True)  # the guard looks at the environment that a process began with
    assert run.status == 0, run.output
    started = {int(word) for line in re.findall(r"WORKERS (.*)", run.output) for word in line.split()}
    assert len(started) == 6
    assert left(started) == set()
