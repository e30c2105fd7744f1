"""``spmdlint schema``: a JSON schema of the configuration, for editors."""

from __future__ import annotations

import argparse
import json

from spmdlint.cli.commands import SUCCESS
from spmdlint.schema import schema


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Declare the options, of which there are none."""


def main(_options: argparse.Namespace) -> int:
    """Print the schema."""
    print(json.dumps(schema(), indent=2))
    return SUCCESS
