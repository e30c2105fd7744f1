"""Interpreter settings while the linter works: room for recursion, no garbage collection, no warnings, cores."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

FRAMES = 20_000


@contextmanager
def deep() -> Iterator[None]:
    """Allow :data:`FRAMES` frames inside; code that needs more raises RecursionError, as usual.

    Syntax trees and chains of definitions are deeper than Python's default limit allows.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def unwarned() -> Iterator[None]:
    """Suppress Python's warnings about the code that it parses, which is not the linter's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection inside: most objects live on, and scanning them again and again costs a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # All live objects go to the oldest generation uncounted: otherwise the next allocation would trigger a
            # collection of everything, most of which is no longer needed anyway.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def cores() -> int:
    """The number of cores that this process may use."""
    affinity: Callable[[int], Iterable[int]] | None = getattr(os, "sched_getaffinity", None)
    return len(set(affinity(0))) if affinity is not None else os.cpu_count() or 1
