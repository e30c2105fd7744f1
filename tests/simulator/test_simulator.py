"""A short run of the comparison of the linter with simulated processes; ``make simulator`` is the long one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import compare
import world

HEAD = "import jax\nfrom jax.experimental import multihost_utils\n\n\n@jax.pmap\ndef step(x):\n    return x\n\n\n"


@pytest.mark.parametrize(
    ("body", "diverges"),
    [
        ("step(1)\n", False),
        ("if jax.process_index() == 0:\n    step(1)\n", True),
        ("if jax.process_index() == 0:\n    step(1)\nelse:\n    step(2)\n", False),
        ("for _ in range(jax.process_index()):\n    step(1)\n", True),
        ("if multihost_utils.broadcast_one_to_all(jax.process_index()) == 0:\n    step(1)\n", False),
        ("multihost_utils.sync_global_devices(str(jax.process_index()))\n", True),
        ("if jax.process_index() == 0:\n    raise OSError('the job ends')\nstep(1)\n", False),
    ],
)
def test_the_simulator_knows_which_programs_diverge(body, diverges):
    assert bool(world.can_diverge(HEAD + body, tries=4)) == diverges


@pytest.mark.parametrize("count", [40, pytest.param(100, marks=pytest.mark.long)])
def test_the_linter_agrees_with_the_simulator(count):
    tally = compare.compare([f"test {seed}" for seed in range(count)])
    alarms = [seed for seed, how in tally.wrong if how.startswith("false alarm")]
    missed = [seed for seed, how in tally.wrong if how == "missed"]
    diverging = tally.all[True, True] + tally.all[True, False]
    assert diverging >= 0.3 * count, "programs of both kinds are drawn"
    # Some programs part in one case of thousands only, which the simulator's tries do not meet.
    assert len(alarms) <= diverging // 10, alarms
    assert len(missed) <= diverging // 8, missed
