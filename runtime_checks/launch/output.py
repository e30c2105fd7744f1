"""The processes' output: line by line with the process number as prefix, and complete in files on request."""

from __future__ import annotations

import os
import selectors
import time
from pathlib import Path
from typing import IO, BinaryIO

CHUNK = 1 << 16
LONGEST_LINE = 1 << 20


class Stream:
    def __init__(self, pipe: IO[bytes], target: BinaryIO, prefix: bytes, log: BinaryIO | None) -> None:
        self.pipe = pipe
        self._target = target
        self._prefix = prefix
        self._log = log
        self._held = b""

    def feed(self, data: bytes) -> None:
        """Pass on whole lines, and keep an incomplete last line."""
        if self._log is not None:
            self._log.write(data)
            self._log.flush()
        lines = (self._held + data).split(b"\n")
        self._held = lines.pop()
        if len(self._held) > LONGEST_LINE:
            lines.append(self._held)
            self._held = b""
        self._write(lines)

    def finish(self) -> None:
        if self._held:
            self._write([self._held])
            self._held = b""
        if self._log is not None:
            self._log.close()

    def _write(self, lines: list[bytes]) -> None:
        if lines:
            self._target.write(b"".join(self._prefix + line + b"\n" for line in lines))
            self._target.flush()


class Output:
    """All pipes of all processes; ``log_folder``, if any, exists."""

    def __init__(self, log_folder: Path | None) -> None:
        self._selector = selectors.DefaultSelector()
        self._log_folder = log_folder

    def add(self, process: int, name: str, pipe: IO[bytes], target: BinaryIO) -> None:
        """Follow one pipe; ``name`` is "out" or "err" and names the log file."""
        os.set_blocking(pipe.fileno(), False)
        log = (self._log_folder / f"{process}.{name}").open("wb") if self._log_folder is not None else None
        stream = Stream(pipe, target, f"[{process}] ".encode(), log)
        self._selector.register(pipe, selectors.EVENT_READ, stream)

    def pass_on(self, seconds: float) -> None:
        """Wait for output, at most ``seconds``, and pass it on."""
        if not self._selector.get_map():
            time.sleep(seconds)
            return
        for key, _ in self._selector.select(seconds):
            self._read(key.data)

    def drain(self) -> None:
        """After the end of all processes: pass on the rest of the pipes, and close them."""
        for key in list(self._selector.get_map().values()):
            stream: Stream = key.data
            while self._read(stream):
                pass
            if not stream.pipe.closed:
                self._close(stream)

    def _read(self, stream: Stream) -> bool:
        """Read once; False if there is nothing more for now."""
        try:
            data = os.read(stream.pipe.fileno(), CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._close(stream)
            return False
        stream.feed(data)
        return True

    def _close(self, stream: Stream) -> None:
        self._selector.unregister(stream.pipe)
        stream.finish()
        stream.pipe.close()
