"""Colour on a terminal, none elsewhere."""

from __future__ import annotations

import os
from typing import TextIO

from msgspec import Struct


class Palette(Struct, frozen=True):
    """The sequences that switch a colour on; all empty without colour."""

    error: str = ""
    warning: str = ""
    note: str = ""
    help: str = ""
    frame: str = ""
    bold: str = ""
    reset: str = ""


PLAIN = Palette()


def palette() -> Palette:
    """The colours of a colour terminal."""
    return Palette(
        error="\x1b[1;31m",
        warning="\x1b[1;33m",
        note="\x1b[1;36m",
        help="\x1b[1;32m",
        frame="\x1b[1;34m",
        bold="\x1b[1m",
        reset="\x1b[0m",
    )


def wants_color(stream: TextIO) -> bool:
    """Whether to write colour: NO_COLOR and FORCE_COLOR decide, then whether the stream is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
