"""Where a process is before it has joined its job, for a launcher that ends the run: in a download, say, or at a lock.

No thread of the checks runs there yet that could answer, and the program may fork. So Python's own handler of faults
writes the stack of every thread when a signal comes, even while a lock or a library blocks them all.
"""

from __future__ import annotations

import faulthandler
import re
import signal
from pathlib import Path

from spmdlint.runtime_checks.owners import owner_of
from spmdlint.runtime_checks.records import State

ASKED_BY = signal.SIGURG  # a signal that does nothing to a process that does not answer it
MAX_READ = 1 << 20
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


def answer_in(folder: Path, process: int) -> None:
    """From now on, write the stack of this process into the folder of the run when it is asked for."""
    # It stays open: there is no other time to open it.
    faulthandler.register(ASKED_BY, _file(folder, process).open("wb"), all_threads=True, chain=False)


def answer_of(folder: Path, process: int) -> State | None:
    """Where the main thread of a process was when it was asked; None if it has not answered."""
    try:
        with _file(folder, process).open("rb") as file:
            text = file.read(MAX_READ).decode(errors="replace")
    except OSError:
        return None
    # The main thread comes last, and of each thread the innermost frame first.
    last = re.split(r"^(?:Current thread|Thread) ", text, flags=re.M)[-1]
    frames = [found.groups() for line in last.splitlines() if (found := _FRAME.match(line))]
    shown = [frame for frame in frames[::-1] if owner_of(frame[0]) != "inside"]
    if not shown:
        return None
    filename, line, function = next((one for one in shown[::-1] if owner_of(one[0]) == "user"), shown[-1])
    stack = [f"{file}:{number} in {name}" for file, number, name in shown]
    return {**State(state="late", stack=stack), "filename": filename, "line": int(line), "function": function}


def _file(folder: Path, process: int) -> Path:
    return folder / f"stack.{process}"
