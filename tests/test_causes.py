"""Findings that one change mends are shown together, and all others apart."""

from __future__ import annotations

import pytest

HEAD = """\
import os
import time

import jax
import numpy as np
from jax.experimental import multihost_utils


"""

APART = {
    "the index of the process, where each use is a fault of its own": """
rank = jax.process_index()


def save(step):
    if rank == 0:
        multihost_utils.sync_global_devices("saved")


def load(step):
    if rank == 0:
        multihost_utils.sync_global_devices("loaded")
""",
    "two files": """
def save(folder):
    if not os.path.exists(folder + "/a"):
        multihost_utils.sync_global_devices("a")
    if not os.path.exists(folder + "/b"):
        multihost_utils.sync_global_devices("b")
""",
    "a helper that is called twice": """
def is_there(path):
    return os.path.exists(path)


def save(folder):
    if not is_there(folder + "/a"):
        multihost_utils.sync_global_devices("a")


def load(folder):
    if not is_there(folder + "/b"):
        multihost_utils.sync_global_devices("b")
""",
    "two clocks in one line": """
def save(folder):
    start, end = time.time(), time.time()
    multihost_utils.sync_global_devices(f"saved {start}")
    multihost_utils.sync_global_devices(f"loaded {end}")
""",
    "what the processes agreed on, and what they did not": """
def train():
    seed = int(time.time())
    agreed = int(multihost_utils.broadcast_one_to_all(int(time.time())))
    multihost_utils.sync_global_devices(f"start {agreed}")
    multihost_utils.sync_global_devices(f"seed {seed}")
    rank = jax.process_index()
    multihost_utils.sync_global_devices(f"rank {rank}")
""",
}


@pytest.mark.parametrize("case", APART)
def test_what_has_to_be_mended_by_itself_stays_apart(project, case):
    project.write({"a.py": HEAD + APART[case]})
    count = len(project.check("--preview").json)
    outcome = project.run("check", "--preview")
    assert count == 2
    assert "for the same cause" not in outcome.out
    assert outcome.out.endswith("Found 2 problems.\n")


TOGETHER = {
    "a seed that is used three times": (
        """
def train(params):
    seed = int(time.time())
    key = jax.random.PRNGKey(seed)
    params = jax.device_put(jax.random.normal(key, (8,)), jax.sharding.NamedSharding(mesh, jax.P()))
    multihost_utils.sync_global_devices(f"seed {seed}")
    if seed % 2:
        multihost_utils.sync_global_devices("odd")


mesh = jax.make_mesh((jax.device_count(),), ("data",))
""",
        {"SPMD501", "SPMD308", "SPMD306"},
    ),
    "the latest checkpoint, found once": (
        """
def latest(folder):
    return folder + "/last" if os.path.exists(folder + "/last") else None


def train(folder):
    found = latest(folder)
    if found is None:
        multihost_utils.sync_global_devices("start")
    multihost_utils.sync_global_devices("trained")
    if found is not None:
        multihost_utils.sync_global_devices("resumed")
""",
        {"SPMD306"},
    ),
    "a value that is passed on": (
        """
def save(stamp):
    multihost_utils.sync_global_devices(f"save {stamp}")


def load(stamp):
    multihost_utils.sync_global_devices(f"load {stamp}")


def main():
    stamp = time.time()
    save(stamp)
    load(stamp)
""",
        {"SPMD308"},
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_what_one_change_mends_is_shown_together(project, case):
    text, codes = TOGETHER[case]
    project.write({"a.py": HEAD + text})
    found = project.check("--preview").json
    assert {each["code"] for each in found} == codes
    outcome = project.run("check", "--preview")
    assert outcome.out.count("also, for the same cause: ") == len(found) - 1
    assert outcome.out.endswith(f"Found {len(found)} problems with one cause.\n")
    for options in (("--output-format", "concise"), ("--statistics",)):  # which show findings, and count these
        assert project.run("check", "--preview", *options).out.endswith(f"Found {len(found)} problems.\n")
    for each in found:  # none is hidden
        assert each["message"] in outcome.out
        assert f"a.py:{each['location']['row']}:{each['location']['column']}" in outcome.out
    cached = project.run("check", "--preview")
    assert cached.out == outcome.out


def test_the_others_of_a_cause_stay_if_one_is_suppressed(project):
    text, _ = TOGETHER["the latest checkpoint, found once"]
    first = 'sync_global_devices("start")'
    project.write({"a.py": HEAD + text.replace(first, f"{first}  # spmdlint: ignore[SPMD306] a test")})
    outcome = project.run("check", "--preview")
    assert '"resumed"' in outcome.out
    assert outcome.out.endswith("Found 1 problem.\n")
