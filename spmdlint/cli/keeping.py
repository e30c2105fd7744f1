"""The options that say whether and where a run keeps what it found."""

from __future__ import annotations

import argparse
from pathlib import Path

from spmdlint.config import Config
from spmdlint.files.store import FOLDER


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("cache")
    group.add_argument("--no-cache", action="store_true", help="neither use nor keep results of other runs")
    group.add_argument("--cache-dir", type=Path, metavar="FOLDER", help=f"keep results there, not in {FOLDER}")


def folder(options: argparse.Namespace, config: Config) -> Path | None:
    """Where results are kept; None for nowhere."""
    if options.no_cache:
        return None
    if options.cache_dir is not None:
        return Path(options.cache_dir).absolute()
    # Where nothing says what the project is, its folder may be somebody's home, and not ours to write to.
    return None if config.flat else config.root / FOLDER
