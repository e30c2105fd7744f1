"""``spmdlint server``: the language server, which editors start."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from spmdlint.cli.commands import SUCCESS
from spmdlint.errors import UsageError

LOST = 1
"""The editor is gone without a farewell: the status that the protocol asks for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    # Editors that know several ways to talk to a server name this one, which is the only one here.
    parser.add_argument("--stdio", action="store_true", help="talk over standard input and output, as it always does")


def main(_options: argparse.Namespace) -> int:
    """Serve until the editor leaves.

    Raises:
        UsageError: the library of language servers is not installed, or this is no editor.

    """
    if sys.stdin.isatty():
        raise UsageError(
            "The language server talks to an editor over standard input, and this is a terminal. Editors start it "
            "themselves; 'spmdlint check --watch' shows findings in a terminal."
        )
    if find_spec("pygls") is None:
        raise UsageError(
            "The language server needs pygls, which is not installed: pip install 'spmdlint[server]', or '.[server]' "
            "in a clone of spmdlint."
        )
    from spmdlint.server.serving import serve

    return SUCCESS if serve() else LOST
