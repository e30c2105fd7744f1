"""Take the screenshots for the pages: the commands are run, and their terminal output is drawn.

``python docs/screenshots.py`` writes them; a test checks that their text is what the commands print.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
WIDTH = 118
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def program() -> str:
    """The program of the page "Five minutes"."""
    found = _BLOCK.search((DOCS / "start.md").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def taken(*arguments: str) -> str:
    """The output of a command on that program, in colour, without the parts that differ in every run."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(program(), encoding="utf-8")
        (Path(folder) / "spmdlint.toml").touch()
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "spmdlint", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "", "COLUMNS": str(WIDTH - 18)},
            check=False,
        )
        said = done.stdout + "".join(line for line in done.stderr.splitlines(True) if not line.startswith("["))
        return said.replace(f"{os.path.realpath(folder)}/", "").replace(f"{folder}/", "")


def drawn(command: str, output: str) -> str:
    """The picture of a terminal."""
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(output.rstrip()))
    return console.export_svg(title="spmdlint", unique_id=command.split()[1])


PICTURES = {"start.svg": "spmdlint check train.py", "run.svg": "spmdlint run -n 2 train.py"}


def main() -> None:
    """Take them all."""
    for name, command in PICTURES.items():
        (DOCS / "pictures" / name).write_text(drawn(command, taken(*command.split()[1:])), encoding="utf-8")


if __name__ == "__main__":
    main()
