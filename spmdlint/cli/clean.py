"""``spmdlint clean``: delete the cache of earlier runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from spmdlint.cli.commands import FAILURE, SUCCESS, complain
from spmdlint.files.root import configure
from spmdlint.files.store import FOLDER, clear


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="the project (default: current folder)")
    parser.add_argument("--cache-dir", type=Path, metavar="FOLDER", help="the folder that was passed to check")


def main(options: argparse.Namespace) -> int:
    """Delete the cache, and say where it was."""
    path = Path(options.path).resolve()
    if not path.exists():
        complain(f"There is no file or folder {path}; name the project.")
        return FAILURE
    folder = options.cache_dir or configure([path]).root / FOLDER
    if clear(folder):
        print(f"Deleted {folder}.")
    elif folder.exists():
        complain(f"{folder} is not a cache of spmdlint, and is left alone.")
        return FAILURE
    else:
        print(f"There is no {folder}; nothing to delete.")
    return SUCCESS
