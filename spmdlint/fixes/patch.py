"""The change of a file as a unified diff that `git apply` and `patch` take.

It is made of bytes: a patch must have the bytes of the file, whatever its encoding and its line ends are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_UNFINISHED = b"\n\\ No newline at end of file\n"


def patch(before: bytes, after: bytes, name: str) -> Iterator[bytes]:
    """The lines of the diff; none if nothing changes."""
    import difflib  # only needed for a diff

    # A tab ends the name of a file; without it, a name with a space ends at the space.
    header = os.fsencode(name) + (b"\t" if " " in name else b"")
    for line in difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), header, header):
        yield line if line.endswith(b"\n") else line + _UNFINISHED


def _lines(data: bytes) -> list[bytes]:
    """The lines with their ends, as git and patch count them: a carriage return is a character of its line."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
