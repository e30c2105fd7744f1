"""Why there is no summary of a file."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Trouble(Struct, array_like=True, frozen=True, tag=True):
    """What keeps a file, or a cell of a notebook, from being linted: where, from 1, and a sentence."""

    row: int
    column: int
    message: str
    part: Literal["file", "cell"] = "file"
