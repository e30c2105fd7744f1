"""A JAX that is too old for the runtime checks is named in one sentence: here, a stand-in that only has a version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spmdlint.runtime_checks.options import OLDEST_JAX, unsupported
from tests.runtime.jobs import ROOT

SENTENCE = f"JAX 0.4.25 is not supported; {OLDEST_JAX} or newer is needed."


@pytest.fixture
def old_jax(tmp_path: Path) -> dict[str, str]:
    """An environment whose JAX is 0.4.25."""
    packages = tmp_path / "packages"
    (packages / "jax").mkdir(parents=True)
    (packages / "jax" / "__init__.py").write_text('__version__ = "0.4.25"\n')
    (packages / "jax-0.4.25.dist-info").mkdir()
    (packages / "jax-0.4.25.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.4.25\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(packages), str(ROOT)))}


def run(script: Path, environment: dict[str, str], *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *words, str(script)], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_the_launcher_does_not_start(tmp_path: Path, old_jax: dict[str, str]) -> None:
    script = tmp_path / "program.py"
    script.write_text("print('ran')\n")
    for mode in ("lockstep", "off"):
        told = run(script, old_jax, "-m", "spmdlint", "run", "-n", "2", "--mode", mode)
        assert told == (2, "", f"spmdlint: {SENTENCE}\n")


def test_a_job_goes_on_unchecked(tmp_path: Path, old_jax: dict[str, str]) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import jax\nfrom spmdlint import runtime_checks\nruntime_checks.enable()\n"
        "print(runtime_checks.status().reason)\nruntime_checks.disable()\n"
    )
    assert run(script, old_jax) == (0, f"{SENTENCE}\n", f"spmdlint: the runtime checks are off. {SENTENCE}\n")


def test_the_bound_is_that_of_the_package_and_the_guide() -> None:
    assert f'runtime = ["jax>={OLDEST_JAX}"]' in (ROOT / "pyproject.toml").read_text()
    assert re.search(rf"work\s+with\s+JAX\s+{re.escape(OLDEST_JAX)} ", (ROOT / "docs" / "runtime.md").read_text())


def test_versions_are_compared_as_numbers() -> None:
    told = {version: unsupported(version) for version in ("0.6.1", "0.10.2", "0.6.1.dev20250501", "1.0", "?", None)}
    assert set(told.values()) == {None}
    assert unsupported("0.6.0") is not None
    assert unsupported("0.4.38.dev1") is not None
