"""Room for recursion: syntax trees and chains of definitions are deeper than Python's default limit allows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 20_000


@contextmanager
def deep() -> Iterator[None]:
    """Allow :data:`FRAMES` frames inside; what needs more raises RecursionError, as ever."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
