"""Places in the user's code: frames, tracebacks and stacks without the internals of JAX, Python and this package."""

from __future__ import annotations

import linecache
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType

from spmdlint.runtime_checks.owners import is_here, owner_of
from spmdlint.runtime_checks.records import Place

# Within a folder of packages: they call the test, and wait for nothing.
_RUNNER_FOLDERS = ("/pytest/", "/_pytest/", "/pluggy/")
MAX_STACK = 40
CALLERS = 3
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")  # until Python 3.12, frames of their own within a line


@dataclass(frozen=True, slots=True)
class Site:
    """A line of Python: file (as Python knows it), line from 1, and the function around it.

    ``callers`` are the user's next lines outwards, "file:line" each, where they are known: a line of a helper says
    little without them.
    """

    filename: str
    line: int
    function: str
    callers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    @property
    def short(self) -> str:
        """The line without its folder."""
        return f"{Path(self.filename).name}:{self.line}"

    @property
    def path(self) -> str:
        """The line and those of its callers, all without their folders."""
        return " from ".join([self.short, *(Path(caller).name for caller in self.callers)])


def user_site(frame: FrameType | None) -> Site | None:
    """The innermost line of the user's code on the stack of ``frame``, or of a library if there is none."""
    return _site_of((one.f_code, line) for one, line in traceback.walk_stack(frame)) if frame is not None else None


def _site_of(places: Iterable[tuple[CodeType, int]]) -> Site | None:
    """The first of these places in the user's code, with those that follow, or in a library; innermost first."""
    users: list[Site] = []
    fallback: Site | None = None
    below = ""
    for code, line in places:
        owner = owner_of(code.co_filename)
        if owner == "user" and below not in COMPREHENSIONS:  # a comprehension and the line that it is in are one
            users.append(Site(code.co_filename, line, code.co_name))
        elif owner == "library" and fallback is None:
            fallback = Site(code.co_filename, line, code.co_name)
        if len(users) > CALLERS:
            break
        below = code.co_name if owner == "user" else below
    return replace(users[0], callers=tuple(map(str, users[1:]))) if users else fallback


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's code, or of a library if there is none."""
    fallback: FrameType | None = None
    while frame is not None:
        owner = owner_of(frame.f_code.co_filename)
        if owner == "user":
            return frame
        if owner == "library" and fallback is None:
            fallback = frame
        frame = frame.f_back
    return fallback


def entered(frame: FrameType | None) -> str | None:
    """The function of JAX that the user's code called on the path to ``frame``: `psum`, `process_allgather`.

    What JAX has made of a function of the user's, as `pmap` does, has the name of that.
    """
    below = mapped = None
    while frame is not None and owner_of(frame.f_code.co_filename) == "inside":
        # Our wrappers stand before some functions, and those by which JAX shortens tracebacks before most.
        if not is_here(frame.f_code.co_filename) and not frame.f_code.co_filename.endswith("/traceback_util.py"):
            below = frame
            mapped = next(_functions_in(frame), mapped)
        frame = frame.f_back
    if below is None or frame is None:
        return None
    return mapped.__name__ if mapped is not None and below.f_code.co_name == "wrapped" else below.f_code.co_name


def _functions_in(frame: FrameType) -> Iterator[FunctionType]:
    """The functions of the user's that a frame of JAX maps."""
    for held in map(frame.f_locals.get, ("f", "wrapped_fun")):
        fun = getattr(held, "f", held)  # of one in JAX's wrapping
        if isinstance(fun, FunctionType) and owner_of(fun.__code__.co_filename) == "user":
            yield fun


def line_of(code: CodeType, lasti: int) -> int:
    """The line of an instruction, for a frame that no longer exists."""
    lines = (line for start, end, line in code.co_lines() if start <= lasti < end and line is not None)
    return next(lines, code.co_firstlineno)


def raising_site(trace: TracebackType | None) -> Site | None:
    """The innermost line of the user's code that an exception passed through."""
    return _site_of((frame.f_code, line) for frame, line in reversed(list(traceback.walk_tb(trace))))


def site_data(site: Site | None, function: str | None = None) -> Place:
    """A line in the form for the exchange and for reports, with what is called there, or the function around it."""
    if site is None:
        return {"function": function} if function is not None else {}
    told: Place = {"function": function or site.function, "filename": site.filename, "line": site.line}
    return {**told, "callers": list(site.callers)} if site.callers else told


def exit_site(trace: TracebackType | None) -> Site | None:
    """The user's line that exited the program; None for the last line of a file, which ends it normally."""
    site = raising_site(trace)
    if site is None or site.function != "<module>":
        return site
    rest = (line.strip() for line in linecache.getlines(site.filename)[site.line :])
    return site if any(line and not line.startswith("#") for line in rest) else None


def stack_lines(frame: FrameType | None) -> list[str]:
    """A stack as short lines, outermost first, without the frames of this package and of JAX.

    Those of the test runner are left out too, unless there are no others.
    """
    summary = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=MAX_STACK, lookup_lines=False)
    shown = [entry for entry in _before_our_wait(summary[::-1]) if owner_of(entry.filename) != "inside"]
    runner = [entry for entry in shown if any(folder in entry.filename for folder in _RUNNER_FOLDERS)]
    shown = [entry for entry in shown if entry not in runner or owner_of(entry.filename) != "library"] or shown
    return [f"{entry.filename}:{entry.lineno} in {entry.name}" for entry in shown[-MAX_STACK:]]


def _before_our_wait(stack: Sequence[traceback.FrameSummary]) -> Sequence[traceback.FrameSummary]:
    """A stack, outermost first, without what this package calls if the program has called it: `threading.py`."""
    ours = next((number for number in range(len(stack) - 1, -1, -1) if is_here(stack[number].filename)), 0)
    outside, within = ({owner_of(entry.filename) for entry in part} for part in (stack[:ours], stack[ours:]))
    return stack[:ours] if "user" in outside and "user" not in within else stack


def main_stack() -> tuple[list[str], Site | None]:
    """What the main thread is doing now, called from another thread: its stack and its innermost user line."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return stack_lines(frame), user_site(frame)
