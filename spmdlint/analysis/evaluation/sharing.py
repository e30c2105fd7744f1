"""One object for small collections that are equal: functions have few blocks, and their numbers are always the same."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

Numbers = TypeVar("Numbers", tuple[Any, ...], frozenset[int])
_SMALL = 8


def shared(numbers: Numbers) -> Numbers:
    """A tuple or set that is equal to this one, and kept for others that are, too; large ones stay as they are."""
    return _kept(numbers) if len(numbers) <= _SMALL else numbers


@lru_cache(maxsize=1 << 16)
def _kept(numbers: Any) -> Any:
    return numbers
