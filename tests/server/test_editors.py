"""The settings on the page about editors, in those editors that are installed: what a reader pastes works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "editor.md").read_text(encoding="utf-8")
PROGRAM = "import jax\n\nprint('\N{SNAKE}', jax.tree_map(abs, {}))\n"
FIXED = PROGRAM.replace("tree_map", "tree.map")

pytestmark = pytest.mark.editors


def settings(language: str) -> list[str]:
    """The settings on the page in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(project, *command: str) -> str:
    """Run an editor in the project, as a user who has installed spmdlint; what it prints."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(project.root),
        "XDG_CONFIG_HOME": str(project.root / ".config"),
    }
    done = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (done.stdout + done.stderr).replace("\r\n", "\n")


def neovim() -> tuple[int, ...]:
    """The version of Neovim; empty if it is not installed."""
    program = shutil.which("nvim")
    if program is None:
        return ()
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"NVIM v(\d+)\.(\d+)", said)
    return () if found is None else tuple(map(int, found.groups()))


@pytest.mark.parametrize(("number", "least"), [(0, (0, 11)), (1, (0, 8))], ids=["config", "start"])
def test_neovim(project, number, least):
    if neovim() < least:
        pytest.skip(f"needs Neovim {least[0]}.{least[1]}")
    project.write({"a.py": PROGRAM, "init.lua": settings("lua")[number]})
    said = run(project, "nvim", "--headless", "-u", "init.lua", "a.py", "-c", f"luafile {HERE / 'neovim.lua'}")
    assert "SPMD602 2 14 spmdlint" in said
    assert f"# \N{SNAKE} a comment\n{FIXED}".strip() in said


def test_emacs(project):
    if shutil.which("emacs") is None:
        pytest.skip("needs Emacs")
    eglot = ["emacs", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"]
    if subprocess.run(eglot, capture_output=True, check=False).returncode:
        pytest.skip("needs Eglot, which comes with Emacs 29")
    project.write({"a.py": PROGRAM, "init.el": settings("elisp")[0]})
    said = run(project, "emacs", "--batch", "--eval", "(package-initialize)", "-l", "init.el", "-l", f"{HERE}/emacs.el")
    assert "finding: jax.tree_map at 3" in said
    assert "tree.map(abs" in said.partition("text: ")[2]


def test_the_extension_for_vs_code_is_code(project):
    """It was tried in VS Code, which is not installed here."""
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    package = json.loads(settings("json")[0])
    project.write({package["main"]: settings("js")[0]})
    assert run(project, "node", "--check", package["main"]) == ""
    assert package["contributes"]["configuration"]["properties"]["spmdlint.command"]["default"] == "spmdlint"
