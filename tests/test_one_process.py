"""Programs in which nothing speaks of several processes: by default they are left alone where they may be of one."""

import pytest

SAVES = """
from datetime import datetime

import orbax.checkpoint as ocp


def main(state):
    manager = ocp.CheckpointManager(f"/tmp/run_{datetime.now():%H%M%S}")
    manager.save(0, args=ocp.args.StandardSave(state))
"""
LOADS = """
import random

import orbax.checkpoint as ocp

AGENTS = {}


def new_game():
    key = random.choice([5, 7])
    if key not in AGENTS:
        AGENTS[key] = ocp.PyTreeCheckpointer().restore(f"/agents/{key}")
    return AGENTS[key]
"""
FITS = """
import jax


@jax.jit
def step(params, rows):
    return params - rows.mean()


def fit(params, config, load):
    for name in set(config["methods"]):
        params = step(params, load(name))
    return params
"""
SIGN = """

def say(text):
    if jax.process_index() == 0:
        print(text)
"""


@pytest.mark.parametrize(("text", "code"), [(SAVES, "SPMD308"), (LOADS, "SPMD309"), (FITS, "SPMD201")])
def test_a_program_without_a_sign_of_processes(project, text, code):
    project.write({"program.py": text})
    assert project.check().found == []
    assert code in {each for _, _, each in project.check("--preview").found}


@pytest.mark.parametrize(("text", "code"), [(SAVES, "SPMD308"), (LOADS, "SPMD309"), (FITS, "SPMD201")])
def test_a_program_that_speaks_of_processes(project, text, code):
    project.write({"program.py": "import jax\n" + text + SIGN})
    assert {each for _, _, each in project.check().found} == {code}
