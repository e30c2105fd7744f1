"""The job in which a benchmark measures the checks: it switches them on and off by itself."""

import os
import sys

from spmdlint import runtime_checks
from spmdlint.runtime_checks.options import MODE_VARIABLE, RUN_FOLDER_VARIABLE, launched_process


def take_over():
    """Refuse checks that the launcher has switched on, which stay on; then behave as outside of a launcher.

    The calls of a benchmark need not agree: its processes take turns.
    """
    mode = runtime_checks.status().mode
    if mode != "off":
        words = f"This benchmark switches the runtime checks on and off by itself: give --mode off, not --mode {mode}."
        sys.exit(words if launched_process() in (None, 0) else 2)
    for name in (RUN_FOLDER_VARIABLE, MODE_VARIABLE):
        os.environ.pop(name, None)
