"""Numbers on the command line."""

from __future__ import annotations

import argparse

MOST = 1024  # processes, or devices of each: more than one machine can rehearse


def count(text: str) -> int:
    """A number of processes or devices, at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def bounded(text: str) -> int:
    """A number of processes or devices that are started on this machine."""
    number = count(text)
    if number > MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than {MOST:,}, the most on one machine")
    return number
