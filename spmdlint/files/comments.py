"""A comment as the linter sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that may hold a directive; ``text`` starts with the hash, row and column count from 1."""

    row: int
    column: int
    text: str
    own_line: bool
