"""Under Open MPI's mpirun, which JAX finds by itself: no launcher of ours, the service in process 0."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.jobs import DIVERGENT, HANGS, PRELUDE, ROOT, strays

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")

EQUAL = (
    PRELUDE
    + """
step = jax.jit(lambda w, x: w + jnp.mean(x))
w = jnp.zeros(())
for i in range(20):
    w = step(w, everywhere([i, i]))
    if me == 0:
        print("log", float(w * 100))
print("done", value(w))
"""
)


def mpirun(script: Path, mode: str, limit: float = HANGS) -> tuple[int | None, str]:
    """The status and output of two processes of a script; all of them are ended at the limit."""
    given = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    given |= {"SPMDLINT_RUNTIME_CHECKS": mode, "SPMDLINT_ON_DIVERGENCE": "exit"}
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    for name in given:
        words += ["-x", name]
    words += [sys.executable, "-m", "spmdlint.runtime_checks", str(script)]
    job = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, **given},
    )
    try:
        output = job.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        # Not SIGKILL: it is mpirun that ends its processes.
        os.killpg(job.pid, signal.SIGTERM)
        output = job.communicate()[0]
        return None, output
    assert not strays(str(script)), output
    return job.returncode, output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_job_that_diverges_ends_with_its_report(mode: str, tmp_path: Path) -> None:
    script = tmp_path / "one_batch_less.py"
    script.write_text((DIVERGENT / script.name).read_text())
    status, output = mpirun(script, mode)
    assert status == 3, output
    assert "spmdlint: diverged (missing): process 1 finished after 3 parallel calls of processes 0-1" in output
    assert f"train_step  at {script}:22" in output


def test_a_job_that_agrees_is_left_in_peace(tmp_path: Path) -> None:
    script = tmp_path / "equal.py"
    script.write_text(EQUAL)
    status, output = mpirun(script, "background")
    assert status == 0, output
    assert output.count("done 190.0") == 2
    assert "spmdlint" not in output
