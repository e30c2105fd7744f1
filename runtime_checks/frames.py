"""Places in the user's code: frames, tracebacks and stacks without the internals of JAX, Python and this package."""

from __future__ import annotations

import linecache
import sys
import sysconfig
import threading
import traceback
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Literal

Owner = Literal["user", "library", "inside"]

_HERE = {str(Path(__file__).parent), str(Path(__file__).resolve().parent)}
_LIBRARY = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(Path(sysconfig.get_path("stdlib")).resolve())}
)
_JAX_FOLDERS = ("/site-packages/jax/", "/site-packages/jaxlib/", "/dist-packages/jax/", "/dist-packages/jaxlib/")
MAX_STACK = 40


@dataclass(frozen=True, slots=True)
class Site:
    """A line of Python: file (as Python knows it), line from 1, and the function around it."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    @property
    def short(self) -> str:
        """The line without its folder."""
        return f"{Path(self.filename).name}:{self.line}"


@lru_cache(maxsize=8192)
def owner_of(filename: str) -> Owner:
    """The owner of a file: the user, a library, or JAX and this package (never worth showing)."""
    if filename.startswith("<") or any(filename.startswith(here + "/") for here in _HERE):
        return "inside"
    if any(folder in filename for folder in _JAX_FOLDERS) or filename.startswith(_jax_folder()):
        return "inside"
    if filename.startswith(_LIBRARY) or "/site-packages/" in filename or "/dist-packages/" in filename:
        return "library"
    return "user"


@lru_cache(maxsize=1)
def _jax_folder() -> str:
    module = sys.modules.get("jax")
    origin = getattr(module, "__file__", None)
    return str(Path(origin).parent) + "/" if origin else "\0"


def user_site(frame: FrameType | None) -> Site | None:
    """The innermost line of the user's code on the stack of ``frame``, or of a library if there is none."""
    found = user_frame(frame)
    return Site(found.f_code.co_filename, found.f_lineno, found.f_code.co_name) if found is not None else None


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
    """The function that the user's code called on the path to ``frame``: `psum`, `process_allgather`."""
    below = None
    while frame is not None and owner_of(frame.f_code.co_filename) == "inside":
        below, frame = frame, frame.f_back
    return below.f_code.co_name if below is not None and frame is not None else None


def line_of(code: CodeType, lasti: int) -> int:
    """The line of an instruction, for a frame that no longer exists."""
    found = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            found = line
    return found


def raising_site(trace: TracebackType | None) -> Site | None:
    """The innermost line of the user's code that an exception passed through."""
    best: Site | None = None
    fallback: Site | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        owner = owner_of(code.co_filename)
        site = Site(code.co_filename, trace.tb_lineno, code.co_name)
        if owner == "user":
            best = site
        elif owner == "library":
            fallback = site
        trace = trace.tb_next
    return best or fallback


def without_runner(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first line on, without the frames of the runner; None if it never got there."""
    while trace is not None and owner_of(trace.tb_frame.f_code.co_filename) != "user":
        trace = trace.tb_next
    return trace


def site_data(site: Site | None) -> dict[str, object]:
    """A line in the form for reports."""
    return {"filename": site.filename, "line": site.line, "function": site.function} if site else {}


def exit_site(trace: TracebackType | None) -> Site | None:
    """The user's line that exited the program; None for the last line of a file, which ends it normally."""
    site = raising_site(trace)
    if site is None or site.function != "<module>":
        return site
    rest = (line.strip() for line in linecache.getlines(site.filename)[site.line :])
    return site if any(line and not line.startswith("#") for line in rest) else None


def stack_lines(frame: FrameType | None) -> list[str]:
    """A stack as short lines, outermost first, without the frames of this package and of JAX."""
    summary = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=MAX_STACK, lookup_lines=False)
    lines = [
        f"{entry.filename}:{entry.lineno} in {entry.name}"
        for entry in reversed(summary)
        if owner_of(entry.filename) != "inside"
    ]
    return lines[-MAX_STACK:]


def main_stack() -> tuple[list[str], Site | None]:
    """What the main thread is doing now, called from another thread: its stack and its innermost user line."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return stack_lines(frame), user_site(frame)
