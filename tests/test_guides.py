"""What a reader of JAX's guides types in: it is linted as it should be, and JAX runs it, or raises, as it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parent.parent / "fixtures" / "guides"
PROGRAMS = sorted(GUIDES.rglob("*.py"))
_DUE = re.compile(r"# error: (SPMD[0-9]{3})$", re.MULTILINE)
_RAISES = re.compile(r"\A# raises: (\w+)$", re.MULTILINE)
# These need a coordinator, or another package, or would join a job that there is not.
APART = {"initialize_in_full", "initialize_alone", "initialize_twice", "mpi"}

RUNNER = """\
import json, runpy, sys

told = {}
for path in sys.argv[1:]:
    try:
        runpy.run_path(path)
        told[path] = ""
    except Exception as error:
        told[path] = [kind.__name__ for kind in type(error).__mro__]
print(json.dumps(told))
"""


def name(path):
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_it_is_linted(path, project):
    shutil.copy(path, project.root)
    lines = path.read_text().split("\n")
    due = [(row, code) for row, line in enumerate(lines, start=1) for code in _DUE.findall(line)]
    found = {(each["location"]["row"], each["code"]) for each in project.check("--preview").json}
    assert sorted(found) == due


@pytest.fixture(scope="session")
def outcomes():
    """What JAX says of each program: all in one process, which costs seconds and not minutes."""
    pytest.importorskip("jax", minversion="0.8")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    paths = [str(path) for path in PROGRAMS if path.stem not in APART]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNER, *paths],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", [path for path in PROGRAMS if path.stem not in APART], ids=name)
def test_it_runs_or_raises(path, outcomes):
    raises = _RAISES.match(path.read_text())
    if raises is None:
        assert outcomes[str(path)] == ""
    else:
        assert raises[1] in outcomes[str(path)]


def test_every_finding_that_raises_says_so():
    """A program that raises and that the linter is silent about depends on the version or the devices, or is known."""
    silent = {path.stem for path in PROGRAMS if _RAISES.match(path.read_text()) and not _DUE.search(path.read_text())}
    assert silent == {"too_many_rows", "unequal_rows", "list_of_in_axes", "grid"}
