"""Whose code a frame runs, and tracebacks without the frames of the checks."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Literal

Owner = Literal["user", "library", "inside"]

_HERE = {str(Path(__file__).parent), str(Path(__file__).resolve().parent)}
_LIBRARY = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(Path(sysconfig.get_path("stdlib")).resolve())}
)
_JAX_FOLDERS = ("/site-packages/jax/", "/site-packages/jaxlib/", "/dist-packages/jax/", "/dist-packages/jaxlib/")


@lru_cache(maxsize=8192)
def owner_of(filename: str) -> Owner:
    """The owner of a file: the user, a library, or JAX and this package (never worth showing)."""
    if filename.startswith("<") or is_here(filename):
        return "inside"
    if any(folder in filename for folder in _JAX_FOLDERS) or filename.startswith(_jax_folder()):
        return "inside"
    if filename.startswith(_LIBRARY) or "/site-packages/" in filename or "/dist-packages/" in filename:
        return "library"
    return "user"


def is_here(filename: str) -> bool:
    """Whether a file is one of this package."""
    return any(filename.startswith(here + "/") for here in _HERE)


@lru_cache(maxsize=1)
def _jax_folder() -> str:
    module = sys.modules.get("jax")
    origin = getattr(module, "__file__", None)
    return str(Path(origin).parent) + "/" if origin else "\0"


def without_runner(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first line on, without the frames of the runner; None if it never got there."""
    while trace is not None and owner_of(trace.tb_frame.f_code.co_filename) != "user":
        trace = trace.tb_next
    return trace


def hide_frames(error: BaseException) -> None:
    """Take the frames of the checks, and those of Python's own by which they wait, from an exception and its causes."""
    if _shows_all():
        return
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            trace, kept, hidden = one.__traceback__, [], False
            while trace is not None:
                filename = trace.tb_frame.f_code.co_filename
                pythons = owner_of(filename) == "library" and "-packages/" not in filename
                hidden = is_here(filename) or (hidden and pythons)
                kept += [] if hidden else [trace]
                trace = trace.tb_next
            for each, following in zip(kept, [*kept[1:], None], strict=False):
                each.tb_next = following
            one.__traceback__ = kept[0] if kept else None
            left += [other for other in (one.__cause__, one.__context__) if other is not None]


def _shows_all() -> bool:
    """Whether the user has asked JAX for whole tracebacks."""
    config = getattr(sys.modules.get("jax"), "config", None)
    return getattr(config, "jax_traceback_filtering", None) == "off"
