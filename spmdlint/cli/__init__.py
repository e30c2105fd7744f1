"""The command line. One table lists the subcommands; the module of one is imported only when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from spmdlint.cli.commands import dispatch


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises for what a user can do."""
    return dispatch(sys.argv[1:] if argv is None else list(argv))
