"""How the launcher starts its other parts: with ``sys.path`` as a script has it, less the folder of the script.

``python -m`` puts the current folder on ``sys.path`` before anything of ours runs. There a file of the user's, such as
``inspect.py``, takes the place of a module of the standard library in processes that have nothing to do with it, and in
a program that does not see that file when Python runs it. Python's option ``-P`` exists from 3.11 on only.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = str(Path(__file__).absolute().parents[3])
# Only ``sys`` is imported before the path is right: it is built in. The package is this one wherever it was found.
_CODE = (
    "import sys; sys.path[:] = [{root!r}, *filter(None, sys.path)]; import spmdlint; del sys.path[0]; "
    "from {module} import main; sys.exit(main(sys.argv[1:]))"
)


def command_of(module: str) -> list[str]:
    """The command that calls the ``main`` of a module of this package; its arguments are to be added."""
    return [sys.executable, "-c", _CODE.format(root=_ROOT, module=module)]
