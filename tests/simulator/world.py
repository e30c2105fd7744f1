"""Several processes without devices: threads that meet at every parallel call, and say where they part.

Each process runs the program's text on its own, with modules of ours in place of JAX's and of those that tell one
process from another. At a parallel call it waits until every other process is at one, or has ended: if they are not
all at the same, the processes diverge. Agreement points hand round what the processes passed.
"""

from __future__ import annotations

import builtins
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType, SimpleNamespace
from typing import Any

PROGRAM = "program.py"
LIMIT = 400
"""Parallel calls of one process; a program that makes more is stopped."""
SECONDS = 20


class Diverged(BaseException):
    """Ends a process whose calls are not those of the others; programs that catch exceptions do not catch it."""


@dataclass
class Meeting:
    """Where the processes wait for one another."""

    count: int
    at: dict[int, tuple[str, object]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    answers: dict[int, Sequence[object]] = field(default_factory=dict)
    calls: dict[int, int] = field(default_factory=dict)
    diverged: str = ""
    failed: bool = False
    """An exception has left a process, which stops the job: what the others do then is no divergence."""
    changed: threading.Condition = field(default_factory=threading.Condition)
    lines: set[int] = field(default_factory=set)
    """The lines of the program at which some process made a parallel call, and those of the calls that led there."""

    def call(self, me: int, name: str, value: object = None) -> Sequence[object]:
        """Make a parallel call as one process; gives what each process passed."""
        with self.changed:
            self.lines.update(_lines(sys._getframe()))
            self.calls[me] = self.calls.get(me, 0) + 1
            if self.calls[me] > LIMIT:
                self.diverged = self.diverged or "a program without end"
            self.at[me] = (name, value)
            self._settle()
            if not self.changed.wait_for(lambda: self.failed or self.diverged or me in self.answers, SECONDS):
                self.diverged = "a process that waits for ever"
            if self.diverged or self.failed:
                self.changed.notify_all()
                raise Diverged
            return self.answers.pop(me)

    def end(self, me: int) -> None:
        """A process is done."""
        with self.changed:
            self.ended.add(me)
            self._settle()

    def fail(self) -> None:
        """An exception leaves a process."""
        with self.changed:
            self.failed = True
            self.changed.notify_all()

    def _settle(self) -> None:
        if not self.failed and not self.diverged and self.at and len(self.at) + len(self.ended) == self.count:
            names = {name for name, _ in self.at.values()}
            if self.ended or len(names) > 1:
                self.diverged = f"{sorted(names)} against {'the end' if self.ended else 'each other'}"
            else:
                values = [self.at[me][1] for me in sorted(self.at)]
                self.answers = dict.fromkeys(self.at, values)
                self.at = {}
        self.changed.notify_all()


class Gathered(list[Any]):
    """What ``process_allgather`` gives, with the reductions that programs use on it."""

    def all(self) -> bool:
        return all(self)

    def any(self) -> bool:
        return any(self)

    def max(self) -> Any:
        return max(self)

    def min(self) -> Any:
        return min(self)


def modules(meeting: Meeting, me: int, chance: random.Random, shared: random.Random) -> dict[str, Any]:
    """The modules that a program imports, as one process sees them; ``settings`` are the same for all."""
    source = shared.randrange(meeting.count)

    def parallel(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any) -> Any:
                meeting.call(me, f"{name} {function.__name__}")
                return args[0] if args else None

            return run

        return mapped

    utilities = SimpleNamespace(
        sync_global_devices=lambda name: meeting.call(me, f"barrier {name}") and None,
        process_allgather=lambda value: Gathered(meeting.call(me, "process_allgather", value)),
        # From any process, but the same for all: a program must not rely on which one it was.
        broadcast_one_to_all=lambda value: meeting.call(me, "broadcast_one_to_all", value)[source],
    )
    jax = SimpleNamespace(
        process_index=lambda: me,
        process_count=lambda: meeting.count,
        pmap=parallel("pmap"),
        experimental=SimpleNamespace(multihost_utils=utilities),
    )
    return {
        "jax": jax,
        "jax.experimental": jax.experimental,
        "settings": SimpleNamespace(
            **{name: shared.random() < 0.5 for name in ("debug", "flag", "sharded", "verbose")},
            source=source,
        ),
        "time": SimpleNamespace(time=lambda: 1000 * me + 10 * chance.random()),
        "random": SimpleNamespace(random=chance.random),
        "os": SimpleNamespace(
            path=SimpleNamespace(exists=lambda name: chance.random() < 0.5),
            environ={"SLURM_PROCID": str(me)},
        ),
    }


def _lines(frame: FrameType | None) -> Iterator[int]:
    """The lines of the program that are being executed, innermost first."""
    while frame is not None:
        if frame.f_code.co_filename == PROGRAM:
            yield frame.f_lineno
        frame = frame.f_back


def run(text: str, count: int = 2, seed: int = 0) -> Meeting:
    """Run a program as several processes; ``diverged`` says how they did, and is empty if they did not."""
    meeting = Meeting(count)
    code = compile(text, PROGRAM, "exec")

    def process(me: int) -> None:
        known = modules(meeting, me, random.Random(f"{seed} {me}"), random.Random(f"{seed} of all"))

        def imported(name: str, *_: object) -> Any:
            return known[name]

        names = {**vars(builtins), "__import__": imported, "print": lambda *_: None}
        try:
            exec(code, {"__builtins__": names, "__name__": "__main__"})
        except Diverged:
            pass
        except OSError:
            meeting.fail()
        finally:
            meeting.end(me)

    threads = [threading.Thread(target=process, args=(me,), daemon=True) for me in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * SECONDS)
    return meeting


def can_diverge(text: str, tries: int = 48) -> str:
    """Whether chance can make the processes diverge: the first way that some tries found."""
    return next((how for seed in range(tries) if (how := run(text, 2 + seed % 2, seed).diverged)), "")


def reached(text: str, tries: int = 48) -> set[int]:
    """The lines at which any process made a parallel call, itself or through others."""
    return {line for seed in range(tries) for line in run(text, 2 + seed % 2, seed).lines}
