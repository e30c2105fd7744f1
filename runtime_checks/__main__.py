"""Run a program under the runtime checks without changing it: ``python -m spmdlint.runtime_checks train.py``."""

import sys

if not getattr(sys.flags, "safe_path", False):
    # The current folder, which ``-m`` has put there. A script does not have it; what is imported below, neither.
    del sys.path[0]

from spmdlint.runtime_checks.launch.runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
