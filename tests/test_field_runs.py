"""What a linter finds in public projects, compared with what was judged there: on a small project of our own."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "field.py"
TRAIN = """import jax
from jax.experimental import multihost_utils


def train(state):
    if jax.process_index() == 0:
        multihost_utils.sync_global_devices("first")
    return state
"""
LINTER = """
import json, sys
from pathlib import Path
lines = Path("pkg/train.py").read_text().split("\\n")
found = [(n + 1, "SPMD301") for n, line in enumerate(lines) if "sync_global_devices(" in line]
found = [(n + int(sys.argv[1]), sys.argv[2]) for n, _ in found] + [(5, code) for code in sys.argv[3:]]
name = str(Path("pkg/train.py").absolute())
print(json.dumps([
    {"filename": name, "location": {"row": n, "column": 1}, "code": code, "message": "m"} for n, code in found
]))
sys.exit(1 if found else 0)
"""


@pytest.fixture(scope="module")
def field():
    spec = importlib.util.spec_from_file_location("field_runs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Bench:
    """A repository with one commit, the data about it, and the command."""

    def __init__(self, folder: Path, field) -> None:
        self.folder, self.field = folder, field
        self.repository = folder / "mirrors" / "someone" / "thing"
        (self.repository / "pkg").mkdir(parents=True)
        (self.repository / "pkg" / "train.py").write_text(TRAIN)
        (self.repository / "notes.txt").write_text("not code")
        git(self.repository, "init", "--quiet")
        git(self.repository, "add", ".")
        git(self.repository, "commit", "--quiet", "-m", "one")
        self.commit = git(self.repository, "rev-parse", "HEAD")
        self.data = folder / "data"
        self.data.mkdir()
        self.linter = folder / "linter.py"
        self.linter.write_text(LINTER)
        self.source = {"git": "https://example.org/someone/thing", "commit": self.commit}
        self.judge("right")

    def judge(self, verdict: str, line: int = 7, code: str = "SPMD301", **more: object) -> None:
        text = self.field.digest(TRAIN.split("\n")[line - 1])
        self.write({"file": "pkg/train.py", "line": line, "code": code, "text": text, "verdict": verdict, **more})

    def write(self, finding: dict[str, object]) -> None:
        finding = {"package": "thing", "preview": False, "why": "because", **finding}
        (self.data / "packages.jsonl").write_text(json.dumps({"package": "thing", "source": self.source}) + "\n")
        (self.data / "findings.jsonl").write_text(json.dumps(finding) + "\n")

    def command(self, shift: int = 0, code: str = "SPMD301", *more: str) -> str:
        return shlex.join([sys.executable, str(self.linter), str(shift), code, *more])

    def run(self, *options: str) -> int:
        base = ["--data", str(self.data), "--cache", str(self.folder / "cache")]
        mirrors = ["--mirrors", str(self.folder / "mirrors")]
        return self.field.main([*base, *mirrors, *options])


@pytest.fixture
def bench(tmp_path, field):
    return Bench(tmp_path, field)


def rows(printed: str) -> dict[str, list[int]]:
    """The table: by verdict, how many are unchanged, moved, lost and gained."""
    cells = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    return {row[0]: list(map(int, row[1:])) for row in cells[1:]}


def test_the_linter_itself_finds_what_was_judged(bench, capsys):
    assert bench.run() == 0
    printed = capsys.readouterr().out
    assert rows(printed)["right"] == [1, 0, 0, 0]
    assert sum(map(sum, rows(printed).values())) == 1
    (fetched,) = (bench.folder / "cache").iterdir()
    assert fetched.name == f"someone+thing@{bench.commit[:12]}"
    assert sorted(path.name for path in fetched.rglob("*.*")) == ["spmdlint.toml", "train.py"]


def test_a_right_finding_that_is_lost_fails(bench, capsys):
    assert bench.run("--command", bench.command(1000)) == 1
    printed = capsys.readouterr().out
    assert rows(printed)["right"] == [0, 0, 1, 0]
    assert rows(printed)["new"] == [0, 0, 0, 1]
    assert "lost    right      SPMD301 thing: pkg/train.py:7" in printed


def test_a_wrong_finding_that_is_lost_does_not(bench, capsys):
    bench.judge("wrong", code="SPMD403")
    assert bench.run("--command", f"{sys.executable} -c print([])") == 0
    assert rows(capsys.readouterr().out)["wrong"] == [0, 0, 1, 0]


def test_a_finding_that_was_not_judged_fails(bench, capsys):
    assert bench.run("--command", bench.command(0, "SPMD301", "SPMD403")) == 1
    printed = capsys.readouterr().out
    assert rows(printed)["right"] == [1, 0, 0, 0]
    assert rows(printed)["new"] == [0, 0, 0, 1]
    assert "gained  new        SPMD403 thing: pkg/train.py:5  m" in printed


def test_a_finding_nearby_of_the_same_family_has_moved(bench, capsys):
    assert bench.run("--command", bench.command(1, "SPMD306")) == 0
    printed = capsys.readouterr().out
    assert rows(printed)["right"] == [0, 1, 0, 0]
    assert "pkg/train.py:7 -> SPMD306 in line 8" in printed
    assert bench.run("--command", bench.command(1, "SPMD401")) == 1


def test_two_engines_are_compared_by_the_verdicts(bench, capsys):
    assert bench.run("--command", bench.command(0), "--against", bench.command(0, "SPMD301", "SPMD501")) == 0
    printed = rows(capsys.readouterr().out)
    assert printed["right"] == [1, 0, 0, 0]
    assert printed["new"] == [0, 0, 1, 0]
    assert bench.run("--command", bench.command(1000), "--against", bench.command(0)) == 1


def test_what_was_missed_is_not_due_but_right_if_it_is_found(bench, capsys):
    bench.judge("right", missed=True)
    assert bench.run("--command", f"{sys.executable} -c print([])") == 0
    assert bench.run("--command", bench.command(0)) == 0
    assert rows(capsys.readouterr().out.split("1 projects")[-1])["right"] == [0, 0, 0, 1]


def test_previews_are_not_due_without_them(bench, capsys):
    bench.judge("right", preview=True)
    empty = f"{sys.executable} -c print([])"
    assert bench.run("--command", empty) == 1
    assert bench.run("--command", empty, "--no-preview") == 0


def test_a_program_by_its_path(bench, monkeypatch):
    program = bench.folder / "linter.sh"
    program.write_text(f"#!/bin/sh\n{bench.command()}\n")
    program.chmod(0o755)
    monkeypatch.chdir(bench.folder)
    assert bench.run("--command", "./linter.sh") == 0


def test_facts_that_nobody_judges_are_left_out(bench, capsys):
    assert bench.run("--command", bench.command(0, "SPMD301", "SPMD602", "SPMD901")) == 0
    assert rows(capsys.readouterr().out)["new"] == [0, 0, 0, 0]


def test_a_line_that_is_not_the_one_that_was_judged(bench, capsys):
    bench.write({"file": "pkg/train.py", "line": 7, "code": "SPMD301", "text": "0" * 12, "verdict": "right"})
    assert bench.run() == 2
    assert "pkg/train.py:7 is not the line that was judged (SPMD301)" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["exit 3", "echo", "sleep 5", "no-such-program"])
def test_a_command_that_fails(bench, capsys, command):
    shell = command if command == "no-such-program" else f"sh -c '{command}'"
    assert bench.run("--command", shell, "--limit", "1") == 2
    printed = capsys.readouterr().out
    assert "failed: " in printed
    assert "1 projects, of which 1 failed" in printed


def test_a_commit_that_cannot_be_had(bench, capsys):
    bench.source = {"git": str(bench.folder / "nowhere"), "commit": "0" * 40}
    bench.judge("right")
    assert bench.run("--command", bench.command()) == 2
    assert "failed: thing could not be fetched" in capsys.readouterr().out
    assert not list((bench.folder / "cache").iterdir())


def test_a_commit_is_fetched_where_there_is_no_mirror(bench, capsys):
    git(bench.repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    bench.source = {"git": f"file://{bench.repository}", "commit": bench.commit}
    bench.judge("right")
    assert bench.field.main(["--data", str(bench.data), "--cache", str(bench.folder / "other")]) == 0
    assert rows(capsys.readouterr().out)["right"] == [1, 0, 0, 0]


@pytest.mark.parametrize("kind", ["thing-1.0-py3-none-any.whl", "thing-1.0.tar.gz"])
def test_releases(bench, kind):
    index = bench.folder / "index"
    index.mkdir()
    if kind.endswith(".whl"):
        with zipfile.ZipFile(index / kind, "w") as wheel:
            wheel.writestr("pkg/train.py", TRAIN)
            wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
            wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr("thing-1.0.dist-info/RECORD", "")
    else:
        with tarfile.open(index / kind, "w:gz") as packed:
            packed.add(bench.repository / "pkg", "thing-1.0/pkg")
    into = bench.folder / "files"
    into.mkdir()
    bench.field.unpack(bench.field.Project("thing", pypi="thing==1.0"), index, into)
    assert (into / "pkg" / "train.py").read_text() == TRAIN
    assert [path.name for path in into.rglob("*.py")] == ["train.py"]


def test_a_project_that_is_not_there(bench, capsys):
    with pytest.raises(SystemExit):
        bench.run("other")
    assert "no such project: other" in capsys.readouterr().err


def test_mirrors_by_either_name(bench, field):
    mirrors, name = bench.folder / "mirrors", "someone/thing"
    assert field.mirrored(mirrors, name, bench.commit) == bench.repository / ".git"
    assert field.mirrored(mirrors, name, "0" * 40) is None
    (mirrors / "someone" / "thing").rename(mirrors / "someone+thing")
    assert field.mirrored(mirrors, name, bench.commit) == mirrors / "someone+thing" / ".git"
