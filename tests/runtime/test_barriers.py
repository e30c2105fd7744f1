"""Barriers: one call each, and one of the distributed client that ends by itself is made once all have come."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import rehearse

PROGRAM = """
from jax._src import distributed
client = distributed.global_state.client
step = jax.jit(jnp.sum)
value(step(everywhere([1, 2])))
if me == 0:
    try:
        client.wait_at_barrier("one comes", 100)  # alone
    except Exception as error:
        CAUGHT
value(step(everywhere([1, 2])))
client.wait_at_barrier("both come", timeout_in_ms=30_000)
value(step(everywhere([1, 2])))
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_barrier_that_ended_in_an_error_which_was_caught_is_no_call(mode: str, tmp_path: Path) -> None:
    run = rehearse(tmp_path, PROGRAM.replace("CAUGHT", "print(error)"), options=("--mode", mode))
    assert "one comes" in run.output
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
    assert run.report["message"] == "processes 0-1 made the same 4 parallel calls.", run.output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_one_whose_error_ends_the_program_is_told(mode: str, tmp_path: Path) -> None:
    run = rehearse(tmp_path, PROGRAM.replace("CAUGHT", "raise"), options=("--mode", mode))
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert run.report["processes"]["0"]["state"] == "raised"
    assert run.line(0) == run.marked("alone")


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_barrier_over_the_devices_is_one_call_each_time(mode: str, tmp_path: Path) -> None:
    program = """
    from jax.experimental import multihost_utils
    for number in range(4):
        multihost_utils.sync_global_devices(f"step {number}")
        multihost_utils.process_allgather(np.uint32(number))
    """
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
    assert run.report["message"] == "processes 0-1 made the same 8 parallel calls.", run.output
