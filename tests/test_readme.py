"""What the README and the first pages say, where it can be tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spmdlint
from spmdlint.rule import load_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
# Where a reader is told which JAX to use.
RANGES = ("README.md", "docs/rehearse.md", "docs/runtime.md", "CHANGELOG.md")
# Where a reader is told to name a version of ours.
PINNED = ("docs/lint.md", "docs/ci.md")
# Where a reader is told to install ours.
INSTALLED = ("README.md", "docs/lint.md", "docs/rehearse.md")


def read(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def flat(text: str) -> str:
    return " ".join(text.split())


def spawn(*argv: str, folder: Path = REPOSITORY, timeout: int = 200) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spmdlint", *argv],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )


def blocks() -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def block(start: str) -> str:
    (found,) = [each for each in blocks() if each.startswith(start)]
    return found


def test_there_is_one_range_of_jax():
    """From the lower bound that is installed to the newest that the runtime tests passed on."""
    said = {name: set(re.findall(r"JAX (0\.\d+\.\d+) to (0\.\d+)", flat(read(name)))) for name in RANGES}
    ((lowest, highest),) = said["README.md"]
    assert said == {name: {(lowest, highest)} for name in RANGES}
    project = tomllib.loads(read("pyproject.toml"))
    assert project["project"]["optional-dependencies"]["runtime"] == [f"jax>={lowest}"]
    (passed,) = re.findall(r"their tests pass on ((?:[^.]|\.\d)*)\.", flat(read("docs/runtime.md")))
    versions = [tuple(map(int, version.split("."))) for version in re.findall(r"0\.\d+\.\d+", passed)]
    assert min(versions)[:2] == tuple(map(int, lowest.split(".")))[:2]
    assert max(versions)[:2] == tuple(map(int, highest.split(".")))


def test_the_linter_is_installed_without_jax():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert not [each for each in project["dependencies"] if re.match(r"jax|numpy", each)]
    assert project["requires-python"] == ">=3.10"
    assert "Python 3.10 or newer" in flat(README)


@pytest.mark.parametrize("name", PINNED)
def test_the_version_to_pin_is_ours_and_it_is_said_while_it_is_not_released(name):
    text = flat(read(name))
    assert set(re.findall(r"(?:rev: |spmdlint@)v([\d.]+\d)", text)) == {spmdlint.__version__}
    unreleased = f"## {spmdlint.__version__} (unreleased)" in read("CHANGELOG.md")
    assert (f"Until v{spmdlint.__version__} is released" in text) == unreleased


@pytest.mark.parametrize("name", INSTALLED)
def test_it_is_said_that_nothing_is_released_while_that_is_so(name):
    unreleased = f"## {spmdlint.__version__} (unreleased)" in read("CHANGELOG.md")
    assert (f"Version {spmdlint.__version__} is not released yet" in flat(read(name))) == unreleased


def test_the_finding_that_is_shown_is_found():
    done = spawn("check", "fixtures/demo", "--no-cache")
    assert done.returncode == 1
    assert block("error: SPMD301 varying-condition").rstrip() in done.stdout


def test_the_demo_has_three_hazards_two_of_them_spread_over_two_files(project):
    for path in (REPOSITORY / "fixtures" / "demo").rglob("*.py"):
        project.write({str(path.relative_to(REPOSITORY / "fixtures" / "demo")): path.read_bytes()})
    found = project.check().json
    assert "three hazards, two of which are spread over two files" in flat(README)
    files = [len({each["filename"], *(related["filename"] for related in each["related"])}) for each in found]
    assert sorted(files) == [1, 2, 2]


def commands() -> list[list[str]]:
    """What the README has a reader type in a clone, after ``make demo``."""
    lines = [line.partition("#")[0].split() for each in blocks() for line in each.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["spmdlint"]]


def test_there_are_commands_of_each_kind():
    assert {words[0] for words in commands()} == {"check", "rule", "explain", "run"}


@pytest.mark.parametrize("words", [words for words in commands() if words[0] != "run"], ids=" ".join)
def test_a_command_that_is_shown_works_in_a_clone(words):
    done = spawn(*words)
    assert done.returncode == (1 if words[0] == "check" else 0), done.stderr
    assert done.stdout
    assert done.stderr == ""


def test_the_program_that_is_rehearsed_is_in_a_clone():
    (words,) = [words for words in commands() if words[0] == "run"]
    assert words == ["run", "-n", "2", "fixtures/divergent/swapped_calls.py"]
    assert (REPOSITORY / words[-1]).is_file()


def test_there_are_six_families():
    listed = set(re.findall(r"^\| SPMD(\d)xx", README, re.MULTILINE))
    assert listed == {rule.code[4] for rule in load_rules() if rule.code < "SPMD9"}
    assert "six families" in README
    assert len(listed) == 6


def test_the_rehearsal_that_is_shown(tmp_path):
    """In a folder with nothing else: the linter looks for findings in the whole project of a program that diverged."""
    pytest.importorskip("jax")
    program = "fixtures/divergent/swapped_calls.py"
    shutil.copytree(REPOSITORY / "fixtures/divergent", tmp_path / "fixtures/divergent")
    done = spawn("run", "-n", "2", "--timeout", "120", program, folder=tmp_path)
    assert done.returncode == 3
    shown = done.stderr.replace(f"{tmp_path}/", "")
    assert block("spmdlint: diverged (sequence)").rstrip() in shown


def test_unchecked_it_exits_with_0_and_wrong_numbers():
    pytest.importorskip("jax")
    program = "fixtures/divergent/swapped_calls.py"
    done = spawn("run", "-n", "2", "--timeout", "120", "--mode", "off", program)
    assert done.returncode == 0, done.stderr
    printed = re.findall(r"wrong values \[([\d.]+), ([\d.]+)\]", done.stdout)
    # The data are 1, 2, 3 and 4: the sum of their squares is 30, and that of their absolute values 10.
    assert len(printed) == 2
    assert not {"30.0", "10.0"} & {value for values in printed for value in values}


def test_the_demo_says_what_it_does():
    """What `make demo` would run: its steps, each after a line that says what it does."""
    done = subprocess.run(
        ["make", "-n", "-W", "pyproject.toml", "demo"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith(("echo", ".venv/bin/spmdlint"))]
    assert [step.split()[0] for step in steps] == ["echo", ".venv/bin/spmdlint"] * 2
    assert ".ci/make-venv" in done.stdout
    assert re.search(r'^echo "-- Installing', read(".ci/make-venv"), re.MULTILINE)
