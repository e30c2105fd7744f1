"""``spmdlint check --watch``: the same check again whenever a file of the project changes.

The files are asked for their status a few times a second. That needs no library, works on the network disks of
clusters, where the kernel announces nothing, and follows the same patterns as the linter. The check runs in a worker
process, which is killed if a file changes meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from spmdlint.cli.commands import SUCCESS, complain, dispatch
from spmdlint.config import Config
from spmdlint.errors import UsageError
from spmdlint.files.find import find
from spmdlint.files.root import absolute, configure_named
from spmdlint.files.signature import Status, status
from spmdlint.identity import relative
from spmdlint.output.colors import wants_color
from spmdlint.worker import Say, Worker, WorkerDiedError, answer_all

PAUSE = 0.25
"""The least number of seconds between two looks at the files."""
_SHARE = 10
"""A look may take this part of the time; where it takes long, the pause is longer."""
_WRITING = ("fix", "fix_only", "diff", "add_ignore", "write_baseline", "prune_baseline")


class _Run(Struct, array_like=True):
    words: list[str]
    color: bool


class _Printed(Struct, array_like=True):
    out: str
    err: str


class _Seen(Struct, frozen=True):
    """What a check depends on, as far as files tell: the configuration, or what is wrong with it, and the files."""

    config: Config | str
    files: dict[Path, Status | None]

    def changed(self, before: _Seen) -> str:
        """What is different from before, in a few words."""
        if isinstance(self.config, str) or self.config != before.config:
            return "The configuration changed"
        both = self.files.keys() | before.files.keys()
        changed = (path for path in both if self.files.get(path) != before.files.get(path))
        names = sorted(relative(path, self.config.root) for path in changed)
        more = len(names) - 1
        files = f"{more} more file{'' if more == 1 else 's'}"
        return f"{names[0]} and {files} changed" if more else f"{names[0]} changed"


def watch(options: argparse.Namespace) -> int:
    """Check until the user interrupts.

    Raises:
        UsageError: an option does not go with ``--watch``, or there is nothing to check.

    """
    if "-" in options.paths:
        raise UsageError("--watch waits for files to change, and '-' is not a file; name the files.")
    for name in _WRITING:
        if getattr(options, name) not in (False, None):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for a single run, and --watch repeats it; leave out one of the two.")
    _look(options)
    # An interrupt is how this ends.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_watch(options))
    return SUCCESS


async def _watch(options: argparse.Namespace) -> None:
    worker = Worker(__name__)
    run = _Run([word for word in options.words if word != "--watch"], wants_color(sys.stdout))
    checking: asyncio.Task[None] | None = None
    told = False
    try:
        while True:
            seen = await asyncio.to_thread(_seen, options)
            checking = asyncio.create_task(_check(worker, run))
            now = seen
            while now == seen:
                began = time.monotonic()
                now = await asyncio.to_thread(_seen, options)
                await asyncio.sleep(max(PAUSE, (time.monotonic() - began) * _SHARE))
                if checking.done():
                    checking.result()  # raises what ends all this, such as a pipe that nobody reads any more
                    if not told:
                        complain("Watching for changes; press Ctrl-C to end.")
                        told = True
            checking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await checking
            complain(f"{now.changed(seen)}; checking again.")
    finally:
        if checking is not None:
            checking.cancel()
        worker.kill()


async def _check(worker: Worker, run: _Run) -> None:
    try:
        answer = await worker.ask(msgspec.msgpack.encode(run), lambda _: None)
    except WorkerDiedError:
        complain("The check ended unexpectedly, perhaps because memory ran out; the next change starts it again.")
        return
    printed = msgspec.msgpack.decode(answer, type=_Printed)
    for text, stream in ((printed.out, sys.stdout), (printed.err, sys.stderr)):
        stream.write(text)
        stream.flush()


def _seen(options: argparse.Namespace) -> _Seen:
    try:
        return _look(options)
    except UsageError as error:  # the check says it too
        return _Seen(str(error), {})


def _look(options: argparse.Namespace) -> _Seen:
    paths = list(map(absolute, options.paths))
    config = configure_named(options.paths, Path.cwd(), options.config, force_exclude=options.force_exclude)
    baseline = options.baseline or config.baseline
    files: Sequence[Path] = find(config, paths).project
    return _Seen(config, {path: status(path) for path in (*files, *([] if baseline is None else [baseline]))})


# -- the worker's side of the pipe


def serve() -> None:
    """The worker's main loop."""

    def answer(question: bytes, _say: Say) -> bytes:
        run = msgspec.msgpack.decode(question, type=_Run)
        if run.color:
            os.environ["FORCE_COLOR"] = "1"
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            dispatch(["check", *run.words])
        return msgspec.msgpack.encode(_Printed(out.getvalue(), err.getvalue()))

    answer_all(answer)
