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
COUNTS = """
import multiprocessing

import jax
import numpy as np


def simulate(start, rounds):
    rows = np.array([start] * multiprocessing.cpu_count())
    step = jax.pmap(lambda x: x * 0.5)
    for _ in range(rounds):
        rows = step(rows)
    return rows
"""
SAVES_IN_A_CALLBACK = """
import jax
import orbax.checkpoint as ocp


def train(state):
    manager = ocp.CheckpointManager("/runs/one")

    def save(state, step):
        manager.save(step, args=ocp.args.StandardSave(state))

    @jax.jit
    def run(state):
        jax.debug.callback(save, state, 1)
        return state

    return run(state)
"""
PADS = """
import jax
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("a")
step = jax.pmap(lambda state, rows: state + jax.lax.pmean(rows.input_ids.sum(), "batch"), axis_name="batch")


def collate(rows):
    return tokenizer([row.text for row in rows], return_tensors="np", padding=True)


def train(state, loader):
    for rows in loader:
        state = step(state, collate(rows))
    return state
"""
PLAYS = """
import os

import jax

play = jax.pmap(lambda params: params * 2)


def tournament(folder, load):
    return [play(load(name)) for name in os.listdir(folder)]
"""
PROGRAMS = [
    (SAVES, "SPMD308"),
    (LOADS, "SPMD309"),
    (FITS, "SPMD201"),
    (COUNTS, "SPMD401"),
    (SAVES_IN_A_CALLBACK, "SPMD307"),
    (PADS, "SPMD401"),
    (PLAYS, "SPMD202"),
]
SIGN = """

def say(text):
    if jax.process_index() == 0:
        print(text)
"""

TELLS = """
import jax
import numpy as np
from jax.experimental import multihost_utils


def resume(path, state, shared):
    if not path.exists():
        return state
    {rest}
"""


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("return multihost_utils.broadcast_one_to_all(np.load(path))", ["SPMD306"]),
        ("return multihost_utils.process_allgather(np.load(path))[0]", []),
    ],
)
def test_files_that_one_process_tells_the_others_of(project, rest, found):
    """Where the content of a file is broadcast, the others may not see it; elsewhere it may well be shared."""
    project.write({"program.py": TELLS.format(rest=rest)})
    assert [code for _, _, code in project.check().found] == found
    assert "SPMD306" in {code for _, _, code in project.check("--preview").found}


READS = """
import jax
import numpy as np
from jax.experimental import multihost_utils


def read(path):
    with open(path, "rb") as file:
        return np.load(file)


def sums(folder):
    for _ in range(3):
        try:
            rows = read(f"{{folder}}/{name}.npy")
            return multihost_utils.process_allgather(rows.sum())
        except OSError as error:
            print(jax.process_count(), error)
    return None
"""


@pytest.mark.parametrize(("name", "found"), [("{jax.process_index()}", ["SPMD304"]), ("all", [])])
def test_files_of_one_process(project, name, found):
    """What happens to a file of its own happens to one process; a file that all read may well fail for all."""
    project.write({"program.py": READS.format(name=name)})
    assert [code for _, _, code in project.check().found] == found
    assert "SPMD304" in {code for _, _, code in project.check("--preview").found}


MAKES = """
import os

import jax
import numpy as np
from jax.experimental import multihost_utils


def part(folder, number):
    return os.path.join(folder, f"{{number}}.npz")


def total(folder, parts, work):
    out = []
    for number in parts:
        path = part(folder, number)
        if os.path.exists(path):
            out.append(np.load(path)["all"])
            continue
        rows = multihost_utils.process_allgather(work(number), tiled=True)
        if jax.process_index() == 0:
            {write}
        out.append(rows)
    return out
"""


@pytest.mark.parametrize(
    ("write", "found"),
    [("np.savez(part(folder, number), all=rows)", ["SPMD306"]), ("print(part(folder, number))", [])],
)
def test_files_that_one_process_makes_for_all(project, write, found):
    """Where one process makes the file that all look for, the others look at some other time."""
    project.write({"program.py": MAKES.format(write=write)})
    assert [code for _, _, code in project.check().found] == found
    assert "SPMD306" in {code for _, _, code in project.check("--preview").found}


@pytest.mark.parametrize(("text", "code"), PROGRAMS)
def test_a_program_without_a_sign_of_processes(project, text, code):
    project.write({"program.py": text})
    assert project.check().found == []
    assert code in {each for _, _, each in project.check("--preview").found}


@pytest.mark.parametrize(("text", "code"), PROGRAMS)
def test_a_program_that_speaks_of_processes(project, text, code):
    project.write({"program.py": "import jax\n" + text + SIGN})
    assert {each for _, _, each in project.check().found} == {code}


SAVING_TEST = """
import time

import jax
import numpy as np
import orbax.checkpoint as ocp
from program import mesh_of_all


def test_saving(sharding):
    rows = jax.make_array_from_callback((8,), sharding, lambda index: np.zeros(8)[index])
    key = jax.random.key(int(time.time()))
    manager = ocp.CheckpointManager(f"/tmp/run_{time.time()}")
    manager.save(0, args=ocp.args.StandardSave({"rows": rows, "key": key}))
"""
MESHES = """
import jax

jax.distributed.initialize()


def mesh_of_all():
    print(jax.process_index(), jax.process_count())
    return jax.make_mesh((jax.device_count(),), ("x",))
"""


@pytest.mark.parametrize(("name", "found"), [("test_saving.py", []), ("saving.py", ["SPMD308", "SPMD501"])])
def test_a_test_that_names_no_process(project, name, found):
    """It runs in one, although the program that it tests runs in several."""
    project.write({name: SAVING_TEST, "program.py": MESHES})
    assert sorted(code for _, _, code in project.check().found) == found
    assert {"SPMD308", "SPMD501"} <= {code for _, _, code in project.check("--preview").found}


def test_a_project_below_a_folder_of_tests_is_none_of_them(project):
    program = 'import jax\n\nif __name__ == "__main__":\n    print(jax.process_index())\n'
    project.write({"tests/app/spmdlint.toml": "", "tests/app/train.py": program})
    (finding,) = project.check("--preview", "tests/app").json
    assert finding["code"] == "SPMD607"
    project.write({"tests/app/tests/train.py": program})
    assert [each["filename"] for each in project.check("--preview", "tests/app").json] == [finding["filename"]]
