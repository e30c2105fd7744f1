"""The files of tables that come with the linter, each parsed once.

Tables that are measured are JSON, which is parsed in a fiftieth of the time: they are long, and few runs need them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIX = ".toml"
_FOLDER = Path(__file__).parent


def file_names() -> list[str]:
    """The names of all files, in order."""
    return sorted(path.name for path in _FOLDER.iterdir() if path.suffix == SUFFIX)


@cache
def read_file(name: str) -> Mapping[str, Any]:
    """The contents of one file."""
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))


def names(role: str) -> tuple[str, ...]:
    """The names that play a role for the engine, as in names.toml."""
    return tuple(read_file("names.toml")["names"][role])


@cache
def read_measured(name: str) -> Mapping[str, Any]:
    """The contents of one file that a script has written."""
    found: Mapping[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return found
