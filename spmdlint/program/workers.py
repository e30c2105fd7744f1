"""Lowering many files in several processes.

A worker is a Python of its own that is handed texts and hands back summaries, so nothing depends on how this process
was started. This process takes a share itself; what a worker fails to do, it does, too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from spmdlint.interpreter import uncollected
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
"""Characters for which another process is worth its start."""
MOST = 8
_SERVE = "import sys; sys.path[:] = sys.argv[1:]; from spmdlint.program.workers import serve; serve()"


def lower_all(
    texts: Mapping[Path, str], workers: int | None, progress: Progress | None, timings: Timings
) -> dict[Path, Outcome]:
    """The summary of each text, or why there is none. ``workers``: processes to use, None for what suits."""
    total = sum(map(len, texts.values()))
    if workers is None:
        workers = min(_cores(), MOST, max(1, total // LEAST))
    shares = _shares(texts, workers)
    found: dict[Path, Outcome] = {}
    others = _start([[texts[path] for path in share] for share in shares[1:]])
    for path in shares[0]:
        if progress is not None:
            progress(len(found), len(texts))
        began = time.perf_counter()
        found[path] = _outcome(texts[path])
        timings.files[path] = time.perf_counter() - began
    for share, future in zip(shares[1:], others, strict=True):
        if progress is not None:
            progress(len(found), len(texts))
        done = _result(future) or _done([texts[path] for path in share])
        found.update(zip(share, done.outcomes, strict=True))
        timings.files.update(zip(share, done.seconds, strict=True))
    return found


class _Done(msgspec.Struct, array_like=True):
    """What a worker hands back: the outcomes, and how long each of them took."""

    outcomes: list[Written | Trouble]
    seconds: list[float]


def serve() -> None:
    """What a worker does: lower the texts that come in, and hand the outcomes back."""
    texts = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[bytes])
    with uncollected():
        done = _done([text.decode("utf-8", "surrogatepass") for text in texts])
        sys.stdout.buffer.write(msgspec.msgpack.encode(done))
        sys.stdout.buffer.flush()
    os._exit(0)  # nothing is left to do, and to take everything apart takes time


def _done(texts: Sequence[str]) -> _Done:
    done = _Done([], [])
    for text in texts:
        began = time.perf_counter()
        outcome = _outcome(text)
        done.outcomes.append(write(outcome) if isinstance(outcome, Summary) else outcome)
        done.seconds.append(time.perf_counter() - began)
    return done


def _outcome(text: str) -> Summary | Trouble:
    try:
        return lower(text)
    except LoweringError as error:
        return Trouble(error.row, error.column, f"It does not parse: {error.message}.")


def _start(shares: Sequence[Sequence[str]]) -> list[Future[bytes]]:
    """Hand each share to a worker of its own."""
    if not shares:
        return []
    from concurrent.futures import ThreadPoolExecutor  # which most runs do not need

    pool = ThreadPoolExecutor(len(shares))
    started = [pool.submit(_hand_out, share) for share in shares]
    pool.shutdown(wait=False)  # it takes no more
    return started


def _hand_out(texts: Sequence[str]) -> bytes:
    import subprocess

    done = subprocess.run(  # noqa: S603  (this Python, and nothing from outside)
        [sys.executable, "-c", _SERVE, *sys.path],
        input=msgspec.msgpack.encode([text.encode("utf-8", "surrogatepass") for text in texts]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return done.stdout


def _result(future: Future[bytes]) -> _Done | None:
    """What a worker handed back; None where it failed."""
    from subprocess import SubprocessError

    try:
        return msgspec.msgpack.decode(future.result(), type=_Done)
    except (OSError, SubprocessError, msgspec.MsgspecError, MemoryError):
        return None


def _shares(texts: Mapping[Path, str], workers: int) -> list[list[Path]]:
    """The files in so many shares of about one size."""
    shares: list[list[Path]] = [[] for _ in range(max(1, min(workers, len(texts))))]
    sizes = [0] * len(shares)
    for path in sorted(texts, key=lambda each: (-len(texts[each]), each)):
        least = sizes.index(min(sizes))
        shares[least].append(path)
        sizes[least] += len(texts[path])
    return shares


def _cores() -> int:
    """The cores that this process may use."""
    affinity: Callable[[int], Iterable[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(set(affinity(0))) if affinity is not None else os.cpu_count() or 1
