"""Sentences of findings where the usual one would mislead."""

from __future__ import annotations

import pytest

HEAD = """\
import signal

import jax
from jax.experimental import multihost_utils

norm = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")


class Meter:
    def __init__(self):
        self.mean = jax.pmap(lambda v: jax.lax.pmean(v, "i"), axis_name="i")


@jax.pmap
def save(x):
    return x


class Keeper:
    def save(self, x):
        return save(x)

    def keep(self, x):
        return save(x)


def walk(tree):
    multihost_utils.sync_global_devices("node")
    for child in tree:
        walk(child)


def twice(x):
    save(x)
    save(x)


lead = jax.process_index() == 0
if lead:
"""


@pytest.mark.parametrize(
    ("call", "begins"),
    [
        ("norm(1)", "norm is a parallel call, and"),
        ("Meter().mean(1)", "mean is a parallel call, and"),
        ("jax.pmap(lambda v: v)(1)", "a lambda under jax.pmap is a parallel call, and"),
        ("Keeper().save(1)", "save is a parallel call (reached through save(), which makes it at line 21), and"),
        ("Keeper().keep(1)", "save is a parallel call (reached through keep()), and"),
    ],
)
def test_what_is_called_has_the_name_that_the_reader_knows(project, call, begins):
    project.write({"train.py": f"{HEAD}    {call}\n"})
    (finding,) = project.check().json
    assert finding["message"].startswith(begins)


@pytest.mark.parametrize(("call", "more"), [("walk([])", ""), ("twice(1)", ", and 1 more after it")])
def test_a_function_that_calls_itself_is_not_counted_twice(project, call, more):
    project.write({"train.py": f"{HEAD}    {call}\n"})
    (finding,) = project.check().json
    assert f"lets only some processes make it{more}: " in finding["message"]


FURTHER = """import jax
from jax.experimental import multihost_utils

def helper(x):
    multihost_utils.process_allgather(x)
    multihost_utils.sync_global_devices("helped")

def report(x):
    if jax.process_index() == 0:
        helper(x)
        helper(x)
        multihost_utils.broadcast_one_to_all(x)
        multihost_utils.process_allgather(x)
"""


def test_the_first_further_calls_have_notes(project):
    project.write({"train.py": FURTHER})
    (finding,) = project.check().json
    assert "make it, and 5 more after it: " in finding["message"]
    further = [each for each in finding["related"] if each["message"].endswith(", after it.")]
    assert [(each["location"]["row"], each["message"].split(",")[0]) for each in further] == [
        (6, "sync_global_devices is made here"),
        (11, "process_allgather is reached from here"),
        (12, "broadcast_one_to_all is made here"),
    ]


STOPPER = """

class Stopper:
    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, signum, frame):
        self.asked = True


def run(state, steps):
    stopper = Stopper()
    for step in range(steps):
        if stopper.asked:
            multihost_utils.process_allgather(state)
            raise SystemExit(step)
        if step % 100 == 99:
            multihost_utils.process_allgather(state)
"""


def test_a_signal_is_not_left_to_one_process(project):
    """The process that would decide may be one that the signal did not reach."""
    project.write({"train.py": f"{HEAD}    pass\n{STOPPER}"})
    (finding,) = project.check().json
    assert finding["code"] == "SPMD306"
    assert "reached_preemption_sync_point" in finding["help"]
    assert "one process decide" not in finding["help"]


LOSS = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",))


def step(w, x):
    def loss(w):
        return {loss}

    return w - 0.1 * jax.grad(loss)(w)


run = {run}
"""
MAPPED = "jax.shard_map(step, mesh=mesh, in_specs=(P(), P('data')), out_specs=P(), check_vma=False)"
PMAPPED = "jax.pmap(step, axis_name='data')"
MEAN = "jnp.mean((x @ w) ** 2)"


@pytest.mark.parametrize("run", [MAPPED, PMAPPED])
@pytest.mark.parametrize(("loss", "told"), [(f"jax.lax.pmean({MEAN}, 'data')", True), (MEAN, False)])
def test_why_the_mean_of_the_losses_does_not_reduce_the_gradient(project, run, loss, told):
    project.write({"train.py": LOSS.format(loss=loss, run=run)})
    (finding,) = [each for each in project.check().json if each["code"] == "SPMD503"]
    assert finding["help"].startswith("The reduction of the loss does not reduce the gradient") is told
    notes = {each["message"]: each["location"]["row"] for each in finding["related"]}
    assert (notes.get("The loss is reduced here.") == 11) is told


HELPERS = """
import jax
from jax.experimental import multihost_utils


def process_allgather(prepare, x):
    prepare.everything(x)
    prepare.everything(x)
    return multihost_utils.process_allgather(x)


def gathered(x):
    return multihost_utils.process_allgather(x)


def main(prepare, x):
    if jax.process_index() == 0:
        CALL
"""
WHOLE = "jax.experimental.multihost_utils.process_allgather"


@pytest.mark.parametrize(
    ("call", "begins"),
    [
        ("process_allgather(prepare, x)", f"{WHOLE} is a parallel call (reached through process_allgather(), "),
        ("gathered(x)", "process_allgather is a parallel call (reached through gathered()), "),
        ("multihost_utils.process_allgather(x)", "process_allgather is a parallel call, "),
    ],
)
def test_a_call_has_its_whole_name_if_a_helper_has_the_last_part_of_it(project, call, begins):
    project.write({"train.py": HELPERS.replace("CALL", call)})
    (finding,) = project.check().json
    assert finding["message"].startswith(begins)


WRITTEN = """
import jax
import numpy as np
from jax.experimental import multihost_utils

jax.distributed.initialize()


def main(n):
    rows = 4 if jax.process_index() == 0 else 8
    BODY
"""
IN_ARMS = """if jax.process_index() == 0:
        multihost_utils.process_allgather(np.zeros((2, 3)))
    else:
        multihost_utils.process_allgather(np.ones((5,)))"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("multihost_utils.process_allgather(np.zeros((rows, 3)))", ", but (4, 3) or (8, 3): "),
        ("multihost_utils.process_allgather(np.zeros((rows, n)))", "on every process: "),
        (IN_ARMS, ", but (2, 3) or (5,): "),
    ],
)
def test_shapes_that_are_written_out_are_told(project, body, told):
    project.write({"train.py": WRITTEN.replace("BODY", body)})
    (finding,) = project.check().json
    assert finding["code"] == "SPMD401"
    assert told in finding["message"]
    others = [each["location"]["row"] for each in finding["related"] if "other processes" in each["message"]]
    assert others == ([12] if body == IN_ARMS else [])


SAVING = """
from jax.experimental import multihost_utils


def sync_global_devices():
    multihost_utils.sync_global_devices("saved")
"""


@pytest.mark.parametrize(
    ("folder", "others", "said"),
    [
        ("sac/", (), "line 6 of saving.py"),
        ("sac/", ("ppo/",), "line 6 of sac/saving.py"),
        ("sac/run/", ("ppo/run/",), "line 6 of sac/run/saving.py"),
        ("", ("ppo/",), "line 6 of saving.py"),
    ],
)
def test_a_file_is_told_from_others_with_its_name(project, folder, others, said):
    module = folder.replace("/", ".") + "saving"
    train = f"import jax\nimport {module}\n\nif jax.process_index() == 0:\n    {module}.sync_global_devices()\n"
    project.write({"train.py": train, **{f"{each}saving.py": SAVING for each in (folder, *others)}})
    (finding,) = project.check().json
    assert f"which makes it at {said})" in finding["message"]


GATHER = """
import jax
from jax.experimental import multihost_utils


def tell(loss):
    if jax.process_index() == 0:
        print(multihost_utils.process_allgather(loss{tiled}))
"""


@pytest.mark.parametrize("tiled", ["", ", tiled=True"])
def test_a_gather_of_a_global_array_may_exchange_nothing_and_the_help_says_so(project, tiled):
    project.write({"a.py": GATHER.format(tiled=tiled)})
    (finding,) = project.check().json
    assert finding["code"] == "SPMD301"
    assert ("unless the array is whole on every process already" in finding["help"]) == bool(tiled)


BOUND = """
import functools
import jax
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",))


def step(model, optimizer, params, state, batch, key, scale=1.0):
    return params


mapped = jax.shard_map(functools.partial({bound}), mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
"""


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("step, None, None, scale=2.0", "step takes 4 arguments besides the 3 that are bound."),
        ("step, None, scale=2.0", "step takes 5 arguments besides the 2 that are bound."),
        ("functools.partial(step, None), None", "step takes 4 to 5 arguments besides the 2 that are bound."),
        ("step, None", "step takes 5 to 6 arguments besides the 1 that is bound."),
    ],
)
def test_specs_are_counted_against_what_is_not_bound_yet(project, bound, said):
    project.write({"a.py": BOUND.format(bound=bound)})
    (finding,) = project.check("--select", "SPMD104").json
    assert finding["message"] == f"in_specs has 2 specs, but {said}"
