"""The pages: they make a site without a warning, their code is code, and their pictures show what is printed."""

from __future__ import annotations

import ast
import html
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from spmdlint.config import settings

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted([*DOCS.glob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"])
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

RULE = """\
from spmdlint.visitor_rule import VisitorRule


class Own(VisitorRule):
    code = "ACME101"
    name = "own"
"""


def blocks(*languages: str) -> Any:
    """The blocks of code in these languages, each with its page."""
    found = []
    for path in PAGES:
        for number, block in enumerate(_BLOCK.finditer(path.read_text(encoding="utf-8"))):
            if block[2] in languages:
                lines = block[3].splitlines()
                found.append(pytest.param("\n".join(lines) + "\n", id=f"{path.name}-{number}"))
    return pytest.mark.parametrize("text", found)


def test_the_site_is_made_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path / "site"],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "site" / "rules" / "SPMD301.html").read_text(encoding="utf-8")
    assert "varying-condition" in page


@blocks("python")
def test_python_is_python(text):
    ast.parse(text)


@blocks("yaml")
def test_yaml_is_yaml(text):
    assert yaml.safe_load(text)


@blocks("toml")
def test_settings_are_settings(text, project):
    """Those of ours are accepted; where they name files and folders, these are there."""
    if "[tool.spmdlint" not in text:
        pytest.skip("another tool's")
    files = {"src/a.py": "x = 1\n", "../shared/spmdlint.toml": "", "lint_rules/own.py": RULE}
    project.write({"pyproject.toml": text, **files})
    (project.root / "spmdlint.toml").unlink()
    outcome = project.run("check", "src")
    assert outcome.status == 0, outcome.err
    assert settings(project.root / "pyproject.toml") is not None


@blocks("", "sh", "yaml", "python")
def test_options_exist(text, project):
    for line in re.findall(
        r"(?:^|[;&|] *|run: (?:>-\s*)?|- )(spmdlint (?:check|run|rule|explain|ledger) .*)", text, re.M
    ):
        words = line.partition(" -- ")[0].split("#")[0].split()
        command = words[1:3] if words[1] == "ledger" else words[1:2]
        known = project.run(*command, "--help").out
        for option in words[2:]:
            if option.startswith("--"):
                assert option in known, line


def screenshots() -> Any:
    spec = importlib.util.spec_from_file_location("screenshots", DOCS / "screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_screenshot_shows_what_is_printed():
    output = screenshots().taken("check", "train.py")
    drawn = (DOCS / "pictures" / "start.svg").read_text(encoding="utf-8")
    rows = re.findall(r"<text class=\"check-r[^>]*>(.*?)</text>", drawn)
    shown = html.unescape("".join(rows)).replace("\xa0", " ")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    assert "".join(shown.split()) == "".join(f"$ spmdlint check train.py\n{plain}".split())


def test_every_page_is_reached_from_the_first():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w/-]+)$", index, re.MULTILINE))
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= listed


def test_the_architecture_names_every_module_of_the_analysis() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    analysis = DOCS.parent / "spmdlint/analysis"
    modules = {path.name for path in analysis.rglob("*.py")} - {"__init__.py"}
    assert {name for name in modules if f"`{name}`" not in text and f"/{name}`" not in text} == set()
