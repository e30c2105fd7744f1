"""One object for small collections that are equal: functions have few blocks, and their numbers are always the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

Small = TypeVar("Small", tuple[Any, ...], frozenset[int])
_SMALL = 32


def shared(small: Small) -> Small:
    """A tuple or set that is equal to this one, and kept for others that are, too; large ones stay as they are."""
    return _kept(small) if len(small) <= _SMALL else small


@lru_cache(maxsize=1 << 16)
def _kept(small: Any) -> Any:
    return small
