"""A process that ends everything a launcher has started once the launcher is gone, even by SIGKILL.

Its argument is the folder of the run. The kernel ends the processes of a job with their launcher, but not what these
have forked. The guard waits for the end of its standard input, which comes with the end of the launcher; one that has
cleaned up itself writes "done".
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from spmdlint.runtime_checks.options import RUN_FOLDER_VARIABLE

FOR = 5.0  # seconds for which it looks again: what is being forked just now is not seen yet
AGAIN = 0.1


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


def end_all(folder: str, leaders: Iterable[int] = (), within: float = FOR) -> None:
    """End the processes of a run, until there are none."""
    known, limit = set(leaders), time.monotonic() + within
    while time.monotonic() < limit:
        left = members(folder, known)
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        if not left:
            return
        time.sleep(AGAIN)


def main(arguments: list[str]) -> int:
    """Wait for the end of the launcher, which names the processes that it starts."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # these are for the launcher, whose end is what counts
    leaders: set[int] = set()
    for line in sys.stdin:
        if line.strip() == "done":
            return 0
        if line.strip().isdigit():
            leaders.add(int(line))
    end_all(arguments[0], leaders)
    shutil.rmtree(arguments[0], ignore_errors=True)
    return 0
