"""The options of the cache."""

from __future__ import annotations

import argparse
from pathlib import Path

from spmdlint.config import Config
from spmdlint.files.store import FOLDER, usual_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("cache")
    group.add_argument("--no-cache", action="store_true", help="neither use nor write the cache")
    group.add_argument("--cache-dir", type=Path, metavar="FOLDER", help=f"use this folder instead of {FOLDER}")


def folder(options: argparse.Namespace, config: Config) -> Path | None:
    """The folder of the cache, or None."""
    if options.no_cache:
        return None
    if options.cache_dir is not None:
        return Path(options.cache_dir).absolute()
    return usual_folder(config)
