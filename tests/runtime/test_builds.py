"""What the processes ran with is in every report: also in one of a run in which nothing differed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tests.runtime.jobs import rehearse

STEP = """
step = jax.jit(lambda v: jnp.sum(v))
x = everywhere([1, 2])
value(step(x))
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
@pytest.mark.parametrize(
    ("rest", "status", "verdict"), [("", 0, "clean"), ("raise ValueError\n", 1, "failed"), ("", 0, "ledger")]
)
def test_a_report_has_versions_and_layers(mode: str, rest: str, status: int, verdict: str, tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    given = ("--ledger", str(folder)) if verdict == "ledger" else ()
    run = rehearse(tmp_path, STEP + rest, options=("--mode", mode, *given))
    assert run.status == status, run.output
    told = run.report
    if verdict == "ledger":
        words = [sys.executable, "-m", "spmdlint", "ledger", "diff", str(folder), "--output-format", "json"]
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=False, timeout=150).stdout)
    assert told["versions"]["jax"] == jax.__version__
    assert told["versions"]["python"] == sys.version.split()[0]
    assert told["layers"]["dispatch"] == "on"


def test_a_time_out_has_versions_and_layers(tmp_path: Path) -> None:
    for limit in ("6", "60"):  # a busy machine may need more time to come that far
        run = rehearse(tmp_path, STEP + "time.sleep(1000)\n", options=("--timeout", limit))
        if run.report["versions"]:
            break
    assert (run.status, run.report["verdict"]) == (124, "late"), run.output
    assert run.report["versions"]["jax"] == jax.__version__
    assert run.report["layers"]["dispatch"] == "on"
