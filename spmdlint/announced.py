"""The entry points that installed packages declare for one group.

`importlib.metadata` finds them as well, but importing it takes longer than reading the metadata folders of the
packages; it is only used if a package is not in a folder.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

_FOLDERS = (".dist-info", ".egg-info")


class Announcement(NamedTuple):
    """An entry point: its name, and its value, ``module`` or ``module:attribute``."""

    name: str
    value: str

    def load(self) -> Any:
        """The module or object that the entry point refers to."""
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        names = [name for name in attributes.strip().split(".") if name]
        return reduce(getattr, names, importlib.import_module(module.strip()))


def announced(group: str) -> list[Announcement]:
    """The entry points of a group, in order, each once."""
    if any(os.path.isfile(place) for place in sys.path):  # noqa: PTH113  (an archive with packages in it)
        from importlib.metadata import entry_points

        return sorted({Announcement(point.name, point.value) for point in entry_points(group=group)})
    # Of two versions of a package, the one that Python would import counts.
    seen: dict[str, str] = {}
    for place in sys.path:
        for name in _described(place):
            seen.setdefault(re.split(r"-|\.egg", name)[0].lower().replace(".", "_"), os.path.join(place, name))  # noqa: PTH118
    return sorted({found for described in seen.values() for found in _in(described, group)})


def _described(place: str) -> list[str]:
    """The metadata folders beside packages."""
    try:
        return sorted(name for name in os.listdir(place or ".") if name.endswith(_FOLDERS))  # noqa: PTH208
    except OSError:
        return []


def _in(described: str, group: str) -> Iterator[Announcement]:
    try:
        text = Path(described, "entry_points.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    if group in text:
        yield from _of_group(text, group)


def _of_group(text: str, group: str) -> Iterator[Announcement]:
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Announcement(name.strip(), value.strip())
