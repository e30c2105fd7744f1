"""Lowering many files in several processes.

A worker is a Python of its own that is handed texts and hands back summaries, so nothing depends on how this process
was started. This process takes a share itself; what a worker fails to do, it does, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import msgspec

from spmdlint.interpreter import uncollected
from spmdlint.program.lower import LoweringError, lower
from spmdlint.program.summary import Summary
from spmdlint.program.trouble import Trouble
from spmdlint.program.written import Written, write

Outcome: TypeAlias = "Summary | Written | Trouble"
Progress: TypeAlias = Callable[[int, int], None]

LEAST = 600_000
"""Characters for which another process is worth its start."""
MOST = 8
_SERVE = "import sys; sys.path[:] = sys.argv[1:]; from spmdlint.program.workers import serve; serve()"


def lower_all(texts: Mapping[Path, str], workers: int | None, progress: Progress | None) -> dict[Path, Outcome]:
    """The summary of each text, or why there is none. ``workers``: processes to use, None for what suits."""
    total = sum(map(len, texts.values()))
    if workers is None:
        workers = min(_cores(), MOST, max(1, total // LEAST))
    shares = _shares(texts, workers)
    found: dict[Path, Outcome] = {}
    with ThreadPoolExecutor(max(1, len(shares) - 1)) as pool:
        others = [(share, pool.submit(_hand_out, [texts[path] for path in share])) for share in shares[1:]]
        for path in shares[0] if shares else ():
            if progress is not None:
                progress(len(found), len(texts))
            found[path] = _outcome(texts[path])
        for share, future in others:
            if progress is not None:
                progress(len(found), len(texts))
            outcomes: Sequence[Outcome] = _result(future) or [_outcome(texts[path]) for path in share]
            found.update(zip(share, outcomes, strict=True))
    return found


def serve() -> None:
    """What a worker does: lower the texts that come in, and hand the outcomes back."""
    texts = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[bytes])
    with uncollected():
        outcomes = [_outcome(text.decode("utf-8", "surrogatepass")) for text in texts]
        written = [write(outcome) if isinstance(outcome, Summary) else outcome for outcome in outcomes]
        sys.stdout.buffer.write(msgspec.msgpack.encode(written))
        sys.stdout.buffer.flush()
    os._exit(0)  # nothing is left to do, and to take everything apart takes time


def _outcome(text: str) -> Summary | Trouble:
    try:
        return lower(text)
    except LoweringError as error:
        return Trouble(error.row, error.column, f"It does not parse: {error.message}.")


def _hand_out(texts: Sequence[str]) -> bytes:
    done = subprocess.run(  # noqa: S603  (this Python, and nothing from outside)
        [sys.executable, "-c", _SERVE, *sys.path],
        input=msgspec.msgpack.encode([text.encode("utf-8", "surrogatepass") for text in texts]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return done.stdout


def _result(future: Future[bytes]) -> list[Written | Trouble] | None:
    """What a worker handed back; None where it failed."""
    try:
        outcomes: list[Written | Trouble] = msgspec.msgpack.decode(future.result(), type=list[Written | Trouble])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError, MemoryError):
        return None
    return outcomes


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
