"""Lowers many files in several processes.

A worker is a separate Python process that receives texts and returns summaries, so nothing depends on how this process
was started. It takes one small share after another, as this process does itself, so that none waits for the others at
the end. This process also does whatever a worker fails to do.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from spmdlint.interpreter import cores, uncollected
from spmdlint.messages import receive, send
from spmdlint.program.lower import LoweringError, lower
from spmdlint.program.summary import Summary
from spmdlint.program.trouble import Trouble
from spmdlint.program.written import Written, write
from spmdlint.timings import Timings

if TYPE_CHECKING:
    from concurrent.futures import Future

Outcome: TypeAlias = "Summary | Written | Trouble"
Progress: TypeAlias = Callable[[int, int], None]

LEAST = 1_000_000
"""The number of characters for which another process is worth its start."""
LEAST_SHARE = 100_000
"""The fewest characters that a worker receives at once: a request takes a few hundredths of a second."""
MOST = 8
_SERVE = "import sys; sys.path[:] = sys.argv[1:]; from spmdlint.program.workers import serve; serve()"


def lower_all(
    texts: Mapping[Path, str],
    workers: int | None,
    progress: Progress | None,
    timings: Timings,
    *,
    essence: bool,
) -> dict[Path, Outcome]:
    """The summary of each text, or why there is none.

    ``workers``: the number of processes, None for a suitable one. ``essence``: with versions without idle code.
    """
    total = sum(map(len, texts.values()))
    if workers is None:
        workers = min(cores(), MOST, max(1, total // LEAST))
    waiting = deque(_shares(texts, workers))
    found: dict[Path, Outcome] = {}

    def take(share: Sequence[Path], outcomes: Iterable[Outcome], seconds: Iterable[float]) -> None:
        found.update(zip(share, outcomes, strict=True))
        timings.files.update(zip(share, seconds, strict=True))

    others = _start(min(workers, len(waiting)) - 1, waiting, texts, take, essence=essence)
    while True:
        # A share may come back from a worker that failed: only when all workers are done is nothing left.
        while (share := _next(waiting)) is not None:
            for path in share:
                if progress is not None:
                    progress(len(found), len(texts))
                began = time.perf_counter()
                take((path,), (outcome_of(texts[path], essence=essence),), (time.perf_counter() - began,))
        if not others:
            break
        others.pop().result()
    return {path: found[path] for path in texts}


class _Share(msgspec.Struct, array_like=True):
    """What a worker receives at once."""

    texts: list[bytes]
    essence: bool


class _Done(msgspec.Struct, array_like=True):
    """A worker's results for a share: the outcomes, and how long each of them took."""

    outcomes: list[Written | Trouble]
    seconds: list[float]


def serve() -> None:
    """The worker's main loop: lower the texts of each share that arrives, and return the outcomes."""
    with uncollected():
        while (message := receive(sys.stdin.buffer)) is not None:
            share = msgspec.msgpack.decode(message, type=_Share)
            done = _done([text.decode("utf-8", "surrogatepass") for text in share.texts], essence=share.essence)
            send(sys.stdout.buffer, msgspec.msgpack.encode(done))
    os._exit(0)  # nothing is left to do, and interpreter shutdown takes time


def _done(texts: Sequence[str], *, essence: bool) -> _Done:
    done = _Done([], [])
    for text in texts:
        began = time.perf_counter()
        outcome = outcome_of(text, essence=essence)
        done.outcomes.append(write(outcome) if isinstance(outcome, Summary) else outcome)
        done.seconds.append(time.perf_counter() - began)
    return done


def outcome_of(text: str, *, essence: bool = False) -> Summary | Trouble:
    """The summary of a text, or why there is none."""
    try:
        return lower(text, essence=essence)
    except LoweringError as error:
        end = "" if error.message.endswith((".", "?", "!")) else "."
        return Trouble(error.row, error.column, f"It does not parse: {error.message}{end}")


Take: TypeAlias = Callable[[Sequence[Path], Iterable[Outcome], Iterable[float]], None]


def _start(
    workers: int, waiting: deque[list[Path]], texts: Mapping[Path, str], take: Take, *, essence: bool
) -> list[Future[None]]:
    """Start workers that take shares as long as any are left."""
    if workers <= 0:
        return []
    from concurrent.futures import ThreadPoolExecutor  # which most runs do not need

    pool = ThreadPoolExecutor(workers)
    started = [pool.submit(_hand_out, waiting, texts, take, essence=essence) for _ in range(workers)]
    pool.shutdown(wait=False)  # it accepts no more work
    return started


def _hand_out(waiting: deque[list[Path]], texts: Mapping[Path, str], take: Take, *, essence: bool) -> None:
    """Give shares to one worker until none is left or the worker fails; a failed share waits again."""
    import subprocess

    share: list[Path] | None = None
    try:
        with subprocess.Popen(  # noqa: S603  (this Python, and nothing from outside)
            [sys.executable, "-c", _SERVE, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            while (share := _next(waiting)) is not None:
                given = [texts[path].encode("utf-8", "surrogatepass") for path in share]
                send(worker.stdin, msgspec.msgpack.encode(_Share(given, essence)))
                message = receive(worker.stdout)
                done = None if message is None else msgspec.msgpack.decode(message, type=_Done)
                if done is None or len(done.outcomes) != len(share) or len(done.seconds) != len(share):
                    worker.kill()
                    break
                take(share, done.outcomes, done.seconds)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError, MemoryError):
        pass
    if share is not None:
        waiting.append(share)


def _next(waiting: deque[list[Path]]) -> list[Path] | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _shares(texts: Mapping[Path, str], workers: int) -> list[list[Path]]:
    """The files in shares, at least one for each worker.

    Large files come first, and shares become smaller: there are few of them, and all processes end together.
    """
    left = sum(map(len, texts.values()))
    shares: list[list[Path]] = []
    size, most = 0, 0
    for path in sorted(texts, key=lambda each: (-len(texts[each]), each)):
        length = len(texts[path])
        if not shares or size + length > most:
            shares.append([])
            size, most = 0, min(max(LEAST_SHARE, left // (4 * workers)), left // workers)
        shares[-1].append(path)
        size += length
        left -= length
    return shares
