"""The files of tables that come with the linter, each parsed once."""

from __future__ import annotations

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
