"""The command line."""

from __future__ import annotations

import argparse
import sys

from spmdlint.cli import run


def main() -> None:
    """Dispatch the command."""
    parser = argparse.ArgumentParser(prog="spmdlint")
    commands = parser.add_subparsers(dest="command_name", required=True)
    run.add_arguments(commands.add_parser("run", help="rehearse a multi-process program on this machine"))
    sys.exit(run.main(parser.parse_args()))
