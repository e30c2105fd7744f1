"""The settings on the page about editors, in those editors that are installed: what a reader pastes works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import spmdlint

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "editor.md").read_text(encoding="utf-8")
PROGRAM = "import jax\n\nprint('\N{SNAKE}', jax.tree_map(abs, {}))\n"
FIXED = PROGRAM.replace("tree_map", "tree.map")

pytestmark = pytest.mark.editors


def settings(language: str) -> list[str]:
    """The settings on the page in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(project, *command: str, **more: str) -> str:
    """Run an editor in the project, as a user who has installed spmdlint; what it prints."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(project.root),
        "XDG_CONFIG_HOME": str(project.root / ".config"),
        **more,
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


@pytest.mark.parametrize(("number", "least"), [(0, (0, 11)), (1, (0, 7))], ids=["config", "start"])
def test_neovim(project, number, least):
    if neovim() < least:
        pytest.skip(f"needs Neovim {least[0]}.{least[1]}")
    project.write({"a.py": PROGRAM, "init.lua": settings("lua")[number]})
    said = run(project, "nvim", "--headless", "-u", "init.lua", "a.py", "-c", f"luafile {HERE / 'neovim.lua'}")
    assert "SPMD602 2 14 spmdlint" in said
    lines = f"# \N{SNAKE} a comment\n{FIXED}".split("\n")
    assert "\n".join(filter(None, lines)) in said.replace("\n\n", "\n")  # Neovim 0.7 prints no empty lines


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


EXTENSION = HERE.parents[1] / "editors" / "vscode"


@pytest.mark.network
def test_the_extension_for_vs_code(project):
    """Its types are right, the server answers through the command that it starts, and it is packed as the page says.

    The editor itself is not there.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs Node.js and npm")
    folder = project.root / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix"))
    (commands,) = [block for block in settings("sh") if "vsce" in block]
    home = {"HOME": os.environ["HOME"]}  # where the settings of npm are
    run(project, "npm", "--prefix", str(folder), "ci", "--no-audit", "--no-fund", **home)
    run(project, "npm", "--prefix", str(folder), "run", "check", **home)
    tested = run(project, "npm", "--prefix", str(folder), "test", SPMDLINT_PYTHON=sys.executable, **home)
    assert re.search(r"^# pass [1-9]", tested, re.MULTILINE), tested
    assert re.search(r"^# fail 0$", tested, re.MULTILINE), tested
    assert re.search(r"^# skipped 0$", tested, re.MULTILINE), tested
    assert "npx vsce package" in commands
    run(project, "npm", "--prefix", str(folder), "run", "package", **home)
    (packed,) = folder.glob("*.vsix")
    assert packed.name in commands
    names = set(zipfile.ZipFile(packed).namelist())
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    assert f"extension/{manifest['main'].removeprefix('./')}" in names
    assert "extension/node_modules/vscode-languageclient/package.json" in names
    assert not [name for name in names if name.startswith(("extension/src/", "extension/test/", "extension/out/test/"))]


def test_the_settings_of_the_extension_are_on_the_page():
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    declared = set(manifest["contributes"]["configuration"]["properties"]) - {"spmdlint.trace.server"}
    assert declared == set(re.findall(r"^\| `(spmdlint\.\w+)` \|", PAGE, re.MULTILINE))
    assert declared == set(manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    assert f"spmdlint-{manifest['version']}.vsix" in PAGE
    assert manifest["version"] == spmdlint.__version__
