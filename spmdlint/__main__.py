"""``python -m spmdlint``."""

import sys

from spmdlint.cli import main

sys.exit(main())
