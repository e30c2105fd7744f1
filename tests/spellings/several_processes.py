"""Runs spellings as three simulated processes, and says how they part; or on their own."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_process import Request, prepare

COUNT = 3
LIMIT = 500
"""Parallel calls and turns of one run; a program that makes more does not end."""


@dataclass(frozen=True)
class Run:
    """How one run ended: ``diverged`` says at which calls, ``raised`` what ended the job; both are empty otherwise.

    ``results`` are those of the processes. ``calls`` is the number of parallel calls that all have made together.
    """

    diverged: str = ""
    raised: str = ""
    results: tuple[Any, ...] = ()
    calls: int = 0


class Worker:
    """A process that runs spellings on request."""

    def __init__(self, *argv: str, devices: int, hashes: int) -> None:
        hidden = ("XLA_FLAGS", "OMPI_COMM_WORLD_RANK", "EVALUATE", "SEED")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(__file__).parent / "one_process.py"), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **kept,
                "JAX_PLATFORMS": "cpu",
                "JAX_NUM_CPU_DEVICES": str(devices),
                "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # each program runs once, and compiling takes longer
                "PYTHONHASHSEED": str(hashes),
            },
        )
        assert self.hear() == ("ready",)

    def say(self, what: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(what, self._process.stdin)
        self._process.stdin.flush()

    def hear(self) -> tuple[Any, ...]:
        assert self._process.stdout is not None
        heard: tuple[Any, ...] = pickle.load(self._process.stdout)
        return heard

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Processes:
    """Three simulated processes, of which one runs at a time: the last goes first, and each until its next call."""

    def __init__(self) -> None:
        self._workers = [Worker(str(me), str(COUNT), devices=2 * COUNT, hashes=me + 1) for me in range(COUNT)]

    def run(self, path: Path, name: str, turn: int, *, one_disk: bool = False) -> Run:
        """Run a spelling; with ``one_disk`` the processes work in one folder."""
        folder = tempfile.mkdtemp()
        requests = []
        for me in range(COUNT):
            own = str(Path(folder) / ("shared" if one_disk else str(me)))
            prepare(own, me, turn)
            requests.append(Request(str(path), name, own, turn))
        try:
            return self._run(requests)
        finally:
            shutil.rmtree(folder)

    def _run(self, requests: Sequence[Request]) -> Run:
        ready: deque[tuple[int, object]] = deque((me, requests[me]) for me in reversed(range(COUNT)))
        at: dict[int, tuple[Any, Any]] = {}
        results: dict[int, Any] = {}
        raised = diverged = ""
        calls = turns = 0
        while ready and not raised and turns < LIMIT:
            turns += 1
            me, answer = ready.popleft()
            self._workers[me].say(answer)
            kind, *rest = self._workers[me].hear()
            if kind == "call":
                at[me] = (rest[0], rest[1])
            elif kind == "sleep":
                ready.append((me, "go on"))
            elif kind == "raised":
                raised = rest[0]
            else:
                results[me] = rest[0]
            if at and not ready and not raised:
                different = {what for what, _ in at.values()}
                if results or len(different) > 1:
                    ended = ["the end"] if results else []
                    diverged = " against ".join([*(f"{what[0]} {what[3]}"[:80] for what in different), *ended])
                    break
                calls += 1
                answers = [at[me][1] for me in range(COUNT)]
                if any(" while tracing" in what[0] or " in a thread" in what[0] for what in different):
                    diverged = f"{next(iter(different))[0]}, which is not once per call"
                    break
                ready.extend((me, answers) for me in reversed(range(COUNT)))
                at.clear()
        if turns >= LIMIT:
            diverged = "the program does not end"
        for me in {*at, *(me for me, answer in ready if not isinstance(answer, Request))}:
            self._workers[me].say("stop")
            assert self._workers[me].hear()[0] in ("stopped", "ended", "raised")
        ordered = tuple(results[me] for me in sorted(results))
        return Run(diverged, raised, ordered, calls)

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


class Alone:
    """JAX as it is, on eight devices; or, ``fresh``, in a new process for each spelling, as the only one of a job."""

    def __init__(self, *, fresh: bool = False) -> None:
        self._worker = Worker("fresh" if fresh else "alone", devices=8, hashes=0)

    def run(self, path: Path, name: str) -> Run:
        with tempfile.TemporaryDirectory() as folder:
            self._worker.say(Request(str(path), name, folder, 0))
            kind, what = self._worker.hear()
        return Run(raised=what) if kind == "raised" else Run(results=(what,))

    def close(self) -> None:
        self._worker.close()
