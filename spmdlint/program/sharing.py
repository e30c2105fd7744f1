"""Interns small equal collections: functions have few blocks, and their numbers are always the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

Small = TypeVar("Small", tuple[Any, ...], frozenset[int])
_SMALL = 32


def shared(small: Small) -> Small:
    """A tuple or set equal to this one, shared with all equal ones; large ones are returned unchanged."""
    return _kept(small) if len(small) <= _SMALL else small


@lru_cache(maxsize=1 << 16)
def _kept(small: Any) -> Any:
    return small
