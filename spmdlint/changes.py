"""Changes of a syntax tree, as data: what a fix does if more than a token changes.

They are made when the edits are needed (`fixes/transformations.py`): most runs only say that there is a fix. ``start``
and ``end`` are the place of the expression that changes, without the parentheses around it.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class _Change(Struct, frozen=True, array_like=True, tag=True):
    start: tuple[int, int]
    end: tuple[int, int]


class Wrap(_Change, frozen=True):
    """Pass the expression to a function."""

    function: str


class AddKeyword(_Change, frozen=True):
    """Pass one more keyword argument in a call, as its last one."""

    name: str
    value: str


Change: TypeAlias = Wrap | AddKeyword
