"""Run a program under the runtime checks without changing it: ``python -m spmdlint.runtime_checks train.py``."""

from __future__ import annotations

import sys

from spmdlint.runtime_checks.launch.runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
