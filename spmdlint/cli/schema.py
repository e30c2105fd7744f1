"""``spmdlint schema``: a JSON schema of the configuration, for editors."""

from __future__ import annotations

import argparse
import json

from spmdlint.cli.commands import SUCCESS
from spmdlint.schema import DIALECT, schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--pyproject", action="store_true", help="for a pyproject.toml: the table tool.spmdlint in it, and nothing else"
    )


def main(options: argparse.Namespace) -> int:
    """Print the schema."""
    printed = schema()
    if options.pyproject:
        tool = {"type": "object", "properties": {"spmdlint": printed}}
        printed = {"$schema": DIALECT, "type": "object", "properties": {"tool": tool}}
    print(json.dumps(printed, indent=2))
    return SUCCESS
