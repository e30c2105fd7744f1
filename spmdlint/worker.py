"""A process that answers one question after another, and can be killed in the middle of one.

Python cannot interrupt an analysis that runs in a thread. A process can be killed, and takes what it has started with
it: it leads a process group of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from spmdlint.messages import LENGTH, length_of, receive, send

Say: TypeAlias = Callable[[bytes], None]
Answerer: TypeAlias = Callable[[bytes, Say], bytes]
"""The answer to a question; before it, the answerer may say any number of things."""

_SERVE = "import sys; sys.path[:] = sys.argv[2:]; import importlib; importlib.import_module(sys.argv[1]).serve()"


class WorkerDiedError(Exception):
    """The process ended before it answered."""


class _Said(Struct, array_like=True):
    is_answer: bool
    body: bytes


def answer_all(answerer: Answerer) -> None:
    """The worker's main loop: answer each question on standard input until there are no more."""
    # What a library prints must not get between the messages.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def say(body: bytes, *, is_answer: bool = False) -> None:
            send(stream, msgspec.msgpack.encode(_Said(is_answer, body)))

        with contextlib.suppress(BrokenPipeError):  # who asked has gone
            while (question := receive(sys.stdin.buffer)) is not None:
                say(answerer(question, say), is_answer=True)
                gc.collect()  # a run switches collection off, and leaves much behind; nobody waits now


class Worker:
    """A worker process, started when it is needed, or before. ``module`` has ``serve()``, which runs `answer_all`.

    Its methods are called from one event loop, and a question is asked when the one before is answered.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> asyncio.subprocess.Process:
        """Start the process unless it runs: it imports the analyses while nobody waits for it.

        Raises:
            WorkerDiedError: the system has no room for another process.

        """
        if self._process is None or self._process.returncode is not None:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *("-c", _SERVE, self._module, *sys.path),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkerDiedError from error
        return self._process

    async def ask(self, question: bytes, heard: Say) -> bytes:
        """The answer to a question. If this is cancelled, the process is killed.

        Raises:
            WorkerDiedError: the process ended before it answered.

        """
        process = await self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(len(question).to_bytes(LENGTH, "big") + question)
            while True:
                length = length_of(await process.stdout.readexactly(LENGTH))
                if length is None:
                    raise WorkerDiedError
                said = msgspec.msgpack.decode(await process.stdout.readexactly(length), type=_Said)
                if said.is_answer:
                    return said.body
                heard(said.body)
        except BaseException as error:
            self.kill()
            if isinstance(error, (OSError, EOFError, msgspec.MsgspecError)):
                raise WorkerDiedError from error
            raise

    def kill(self) -> None:
        """End the process, and what it has started."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
