"""Take the screenshots for the pages: the commands are run, and their terminal output is drawn.

``python docs/screenshots.py`` writes them; a test checks that their text is what the commands print. With ``--pages``
it takes those of the page of the runtime checks instead, in a browser: ``pip install --group browser``, and Chromium.
"""

from __future__ import annotations

import io
import os
import re
import shutil
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
    """The program of the page "Use the linter"."""
    found = _BLOCK.search((DOCS / "lint.md").read_text(encoding="utf-8"))
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


def rehearsed(folder: Path) -> Path:
    """The page of a rehearsal in which one process leaves a loop early."""
    shutil.copy(DOCS.parent / "fixtures/divergent/one_batch_less.py", folder / "train.py")
    (folder / "spmdlint.toml").touch()
    words = [sys.executable, "-m", "spmdlint", "run", "-n", "2", "--html", "page.html", "--", "train.py"]
    subprocess.run(words, cwd=folder, capture_output=True, timeout=200, check=False)  # noqa: S603
    path = folder / "page.html"
    path.write_text(path.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
    return path


def large(folder: Path) -> Path:
    """The page of recordings of 64 processes."""
    sys.path.insert(0, str(DOCS.parent / "benchmarks"))
    from page import record

    record(folder, 64, 5000)
    words = [sys.executable, "-m", "spmdlint", "ledger", "html", str(folder), "-o", str(folder / "page.html")]
    subprocess.run(words, capture_output=True, timeout=200, check=True)  # noqa: S603
    return folder / "page.html"


def take_pages() -> None:
    """Take the screenshots of pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, make, what, width, scheme in (
            ("page.png", rehearsed, "html", 1000, "light"),
            ("page-large.png", large, ".grid", 1600, "dark"),
        ):
            with tempfile.TemporaryDirectory() as folder:
                path = make(Path(folder).resolve())
                page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
                page.goto(path.as_uri())
                page.wait_for_selector(".row.chosen")
                page.locator(what).screenshot(path=DOCS / "pictures" / name)
        browser.close()


def main() -> None:
    """Take them all."""
    if "--pages" in sys.argv[1:]:
        take_pages()
        return
    for name, command in PICTURES.items():
        (DOCS / "pictures" / name).write_text(drawn(command, taken(*command.split()[1:])), encoding="utf-8")


if __name__ == "__main__":
    main()
