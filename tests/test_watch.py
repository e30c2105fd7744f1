"""`spmdlint check --watch`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.hanging import HANGING, wait_for_death, wait_for_hanging

OLD_NAME = "import jax\n\nprint(jax.tree_map(abs, {}))\n"


class Watching:
    """A check that waits for changes."""

    def __init__(self, root: Path, *argv: str, env: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "spmdlint", "check", "--watch", "--output-format", "concise", *argv]
        self.process = subprocess.Popen(
            command,
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )

    def prints(self, line: str) -> None:
        """Read up to a line of the output; nothing else comes before it than the findings of one check."""
        assert self.process.stdout is not None
        seen = []
        for found in self.process.stdout:
            seen.append(found)
            if found.startswith(line):
                return
        raise AssertionError(f"It ended after {seen}.")

    def says(self, line: str) -> None:
        """The next line of standard error."""
        assert self.process.stderr is not None
        assert self.process.stderr.readline().startswith(f"spmdlint: {line}")

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C; the status, and what else was printed."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        return self.process.returncode, out, err


@pytest.fixture
def watch(project) -> Callable[..., Watching]:
    started: list[Watching] = []

    def start(*argv: str, **options: Mapping[str, str]) -> Watching:
        started.append(Watching(project.root, *argv, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_findings_are_printed_after_each_change(project, watch):
    project.write({"a.py": OLD_NAME, "b.py": "x = 1\n"})
    watching = watch()
    watching.prints("a.py:3:7: error: SPMD602")
    watching.says("Watching for changes; press Ctrl-C to end.")
    project.write({"a.py": OLD_NAME.replace("tree_map", "tree.map")})
    watching.says("a.py changed; checking again.")
    watching.prints("All checks passed!")
    project.write({"new.py": OLD_NAME})
    watching.says("new.py changed; checking again.")
    watching.prints("new.py:3:7: error: SPMD602")
    (project.root / "new.py").unlink()
    watching.says("new.py changed; checking again.")
    watching.prints("All checks passed!")
    status, out, err = watching.interrupt()
    assert (status, out.strip(), err) == (0, "", "")


def test_a_configuration_is_read_again(project, watch):
    project.write({"a.py": OLD_NAME})
    watching = watch()
    watching.prints("a.py:3:7: error: SPMD602")
    watching.says("Watching for changes; press Ctrl-C to end.")
    project.write({"spmdlint.toml": "selct = []\n"})
    watching.says("The configuration changed; checking again.")
    watching.says(f"{project.root}/spmdlint.toml sets 'selct', which is not a setting")
    project.write({"spmdlint.toml": 'ignore = ["SPMD602"]\n'})
    watching.says("The configuration changed; checking again.")
    watching.prints("All checks passed!")
    assert watching.interrupt()[0] == 0


def test_a_check_that_takes_an_hour_is_given_up(project, watch, plugin, tmp_path):
    noted = tmp_path / "process"
    project.write({"a.py": "import jax\n\n\ndef hang():\n    jax.pmap(abs)\n"})
    watching = watch(env={**plugin(HANGING), "HANGING": str(noted)})
    first = wait_for_hanging(noted)
    project.write({"a.py": OLD_NAME})
    watching.says("a.py changed; checking again.")
    watching.prints("a.py:3:7: error: SPMD602")
    wait_for_death(first)
    project.write({"a.py": "import jax\n\n\ndef hang():\n    jax.pmap(abs)\n"})
    last = wait_for_hanging(noted)
    assert watching.interrupt()[0] == 0
    wait_for_death(last)


def test_it_ends_with_its_reader(project, watch):
    project.write({"a.py": OLD_NAME})
    watching = watch()
    watching.prints("a.py:3:7: error: SPMD602")
    watching.process.stdout.close()
    project.write({"a.py": OLD_NAME * 2})
    assert watching.process.wait() == 141


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-"], "--watch waits for files to change, and '-' is not a file"),
        (["--fix"], "--fix is for a single run, and --watch repeats it"),
        (["--add-ignore", "known"], "--add-ignore is for a single run"),
        (["missing.py"], "There is no file or folder"),
    ],
)
def test_what_cannot_be_watched(project, argv, sentence):
    outcome = project.run("check", "--watch", *argv)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
