"""The command line. One table lists the subcommands; the module of one is imported only when it is used."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from spmdlint.cli.commands import dispatch


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; never raises for what a user can do."""
    if argv is not None:
        return dispatch(list(argv))
    status = dispatch(sys.argv[1:])
    gc.freeze()  # The process ends now: what a run leaves behind need not be looked through once more.
    return status
