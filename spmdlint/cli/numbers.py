"""Numbers on the command line."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """A number of processes or devices, at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)
