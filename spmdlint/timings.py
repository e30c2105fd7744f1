"""Where the time of a run goes: by phase, by lowered file, by analysed function."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from msgspec import Struct, field

SLOWEST = 10
_INTERVAL = 0.01
"""Seconds between two samples of the function being analysed."""
_WORTH_A_LINE = 0.0005


class Timings(Struct):
    """Wall-clock and processor seconds by phase, and how long each file took to lower.

    ``samples``: whether this thread may be sampled, which slows it down a little.
    """

    samples: bool = True
    phases: dict[str, tuple[float, float]] = field(default_factory=dict)
    files: dict[Path, float] = field(default_factory=dict)
    functions: Counter[tuple[Path, str]] = field(default_factory=Counter)
    """In how many samples each function of the linted program was being analysed."""

    @classmethod
    def begun(cls, *, samples: bool) -> Timings:
        """Timings of a process that has only just started."""
        spent = time.process_time()
        return cls(samples, {"start": (spent, spent)})

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the code inside. Phases follow one another; they are not nested."""
        began, worked = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            wall, processor = self.phases.get(name, (0.0, 0.0))
            wall += time.perf_counter() - began
            self.phases[name] = wall, processor + time.process_time() - worked

    @contextmanager
    def sampled(self, analysed: Callable[[FrameType], tuple[Path, str] | None]) -> Iterator[None]:
        """Sample what this thread does inside; ``analysed`` names the function that a stack frame analyses."""
        if not self.samples:
            yield
            return
        stop, watched = threading.Event(), threading.get_ident()

        def look() -> None:
            while not stop.wait(_INTERVAL):
                frame = sys._current_frames().get(watched)
                while frame is not None:
                    about = analysed(frame)
                    if about is not None:
                        self.functions[about] += 1
                        break
                    frame = frame.f_back

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()

    def lines(self) -> Iterator[str]:
        """The measurements, for a reader."""
        yield "Wall-clock seconds and this process's processor seconds, by phase:"
        for name, (wall, processor) in self.phases.items():
            if wall >= _WORTH_A_LINE:
                yield f"{wall:9.3f} {processor:9.3f}  {name}"
        if self.files:
            yield "The files that took longest to lower, in seconds:"
            for path, seconds in sorted(self.files.items(), key=lambda each: -each[1])[:SLOWEST]:
                yield f"{seconds:9.3f}  {path}"
        if self.functions:
            yield "The functions that took longest to analyse, in seconds (sampled):"
            for (path, name), count in self.functions.most_common(SLOWEST):
                yield f"{count * _INTERVAL:9.3f}  {path}: {name}"
