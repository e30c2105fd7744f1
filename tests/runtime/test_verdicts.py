"""Each kind of divergence on real processes: found before a wrong value is printed, and placed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.jobs import DIVERGENT, Run, rehearse

DIVERGENT_PROGRAMS = {
    "swapped_calls": "sequence",
    "one_batch_less": "missing",
    "local_padding": "arguments",
    "set_of_parameters": "arguments",
}


@pytest.mark.parametrize("name", DIVERGENT_PROGRAMS)
def test_divergent_programs_of_the_fixtures(name: str, tmp_path: Path) -> None:
    # The order of a set is another one in each process, if each is a new Python.
    run = rehearse(tmp_path, DIVERGENT / f"{name}.py", cold=True)
    assert run.status == 3, run.output
    assert run.verdict == ("diverged", DIVERGENT_PROGRAMS[name]), run.output
    assert "wrong value" not in run.output


def test_a_process_that_raises_is_placed_where_it_raised(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        step = jax.jit(lambda w, x: w + jnp.mean(x))
        w = jnp.zeros(())
        for i in range(5):
            if i == 3 and me == 1:
                raise ValueError("corrupt record")  # raises
            w = step(w, everywhere([i, i]))  # calls
        """,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert (run.line(0), run.line(1)) == (run.marked("calls"), run.marked("raises"))
    assert run.report["processes"]["1"]["state"] == "raised"
    assert "corrupt record" in run.output


def test_equal_work_is_clean_and_local_work_is_nobodys_business(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        step = jax.jit(lambda w, x: w + jnp.mean(x))
        w = jnp.zeros(())
        for i in range(4):
            own = {f"of_{me}": i, "b": i} if i % 2 else {"b": i, "of_all": i}  # JAX sorts a dictionary's keys
            w = step(w, everywhere(np.full(4, i))) + 0 * jax.jit(lambda tree: tree["b"])(own)
            if me == 0:
                print("log", float(w * 100), float(jnp.linalg.norm(jnp.ones(3))))
        print("done", value(w))
        """,
        devices=2,
    )
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.output.count("done 6.0") == 2


# Each case is a job of its own within one run of two processes: the checks are switched off and on again between them.
KINDS = """
import functools
import json
from collections import OrderedDict
from jax.experimental import multihost_utils
from jax.experimental.multihost_utils import broadcast_one_to_all, sync_global_devices
from spmdlint import runtime_checks

summed = jax.jit(lambda x: jnp.sum(x))

def dtype():
    return summed(jax.make_array_from_process_local_data(rows, np.ones(2, [np.int32, np.float32][me])))

def program():
    return jax.jit(lambda x: jnp.sum(x * (2.0 + me)))(everywhere([1, 2]))

def setup():
    jax.config.update("jax_enable_x64", me == 1)
    try:
        return jax.jit(lambda x: jnp.sum(x))(everywhere([1, 2]))
    finally:
        jax.config.update("jax_enable_x64", False)

def seed():
    return runtime_checks.assert_equal(me, name="the seed")

def seed_for_jax():
    multihost_utils.assert_equal({"rates": np.array([0.5, -0.0 if me else 0.0])})  # equal, as the two zeros are
    return multihost_utils.assert_equal({"seed": me, "rate": 0.1}, "the seeds differ")

def state():
    moment = {"mu": jnp.zeros(3), "nu": jnp.full(3, float(me))}
    return runtime_checks.assert_equal({"step": 4, "opt": [moment, (1, "adam")]}, name="the state")

def weights():
    w = np.zeros((300, 1000), np.float32)
    w[77, 3], w[299] = me * 0.1, me
    return runtime_checks.assert_equal(jnp.array(w), name="the weights")

def structure():
    return runtime_checks.assert_equal({"a": 1, "b": 2} if me else {"a": 1}, name="the state")

def barrier():
    return sync_global_devices(f"save {me}")

def pmap():
    return jax.pmap(lambda x: jax.lax.psum(jnp.sum(x), "i"), axis_name="i")(np.ones((1, 3 + me), np.float32))

def pmap_of_a_partial():
    def step(params, batch, factor, name):
        return jax.lax.psum(params["w"] + jnp.sum(batch) * factor, "i")
    mapped = jax.pmap(functools.partial(step, factor=2.0, name="loss"), axis_name="i", in_axes=(None, 0))
    return mapped({"w": np.ones(()), "b": np.ones(3)}, np.ones((1, 3 + me), np.float32))

def callable_object():
    class Loss:
        def __call__(self, x):
            return jnp.sum(x) * (1 + me)
    return jax.jit(Loss())(everywhere([1, 2]))

def keys():
    names = ["kernel", "scale"] if me == 0 else ["scale", "kernel"]
    params = OrderedDict((name, jnp.full(4, float(len(name)))) for name in names)
    return jax.jit(lambda params, x: list(params.values())[0].sum() * jnp.sum(x))(params, everywhere([1, 2]))

def options():
    x = everywhere([1, 2])
    fast = {"xla_cpu_enable_fast_math": me == 1}
    return jax.jit(lambda x: jnp.sum(x)).lower(x).compile(compiler_options=fast)(x)

def placed():
    jax.device_put(np.float32(me), NamedSharding(mesh, P()))

def two_sources():
    broadcast_one_to_all(np.float32(me), is_source=me == 1)  # one source: process 1
    broadcast_one_to_all(np.float32(me), is_source=True)

def gathered():
    return multihost_utils.process_allgather(np.ones(1 + me, np.float32))

def two_assertions():
    if me == 0:
        runtime_checks.assert_equal(1, "seed")  # of process 0
    else:
        runtime_checks.assert_equal(2, "seed")  # of process 1

def log(value):
    runtime_checks.assert_equal(value, "metric")  # of both

def two_through_a_helper():
    if me == 0:
        log(1)  # log of process 0
    else:
        log(2)  # log of process 1

os.environ.pop("SPMDLINT_RUNTIME_CHECKS")  # of --mode off, which overrules the program
for case in (
    dtype, program, setup, seed, seed_for_jax, state, weights, structure, barrier, pmap, pmap_of_a_partial,
    callable_object, keys, options, placed, two_sources, gathered, two_assertions,
    two_through_a_helper,
):
    runtime_checks.enable("lockstep", on_divergence="raise")
    try:
        case()
        print("wrong value", flush=True)
    except runtime_checks.DivergenceError as error:
        if me == 0:
            print("told", json.dumps([case.__name__, error.report.as_data()]), flush=True)
    runtime_checks.disable()
"""


def reports_of_cases(run: Run) -> dict[str, Any]:
    """The reports that the cases of a run have printed, by name; no case may have passed."""
    assert run.status == 0, run.output
    assert "wrong value" not in run.output
    return dict(json.loads(line.partition("told ")[2]) for line in run.output.splitlines() if "told [" in line)


def test_each_kind(tmp_path: Path) -> None:
    run = rehearse(tmp_path, KINDS, options=("--mode", "off"))
    told = reports_of_cases(run)
    assert {case: report["kind"] for case, report in told.items()} == {
        "dtype": "arguments",
        "program": "program",
        "setup": "setup",
        "seed": "value",
        "seed_for_jax": "value",
        "state": "value",
        "weights": "value",
        "structure": "value",
        "barrier": "arguments",
        "pmap": "arguments",
        "pmap_of_a_partial": "arguments",
        "callable_object": "program",
        "keys": "arguments",
        "options": "setup",
        "placed": "value",
        "two_sources": "arguments",
        "gathered": "arguments",
        "two_assertions": "sequence",
        "two_through_a_helper": "sequence",
    }, run.output
    lines = {case: [side["line"] for side in report["processes"].values()] for case, report in told.items()}
    assert lines.pop("two_assertions") == [run.marked("of process 0"), run.marked("of process 1")]
    assert all(line == one for one, line in lines.values()), lines
    assert lines["two_through_a_helper"][0] == run.marked("of both")
    through = told["two_through_a_helper"]
    for number in (0, 1):
        own = f"program.py:{run.marked(f'log of process {number}')}"
        assert (
            f"process {number} calls assert_equal at program.py:{run.marked('of both')}, called from {own}"
            in (through["message"])
        )
        assert through["processes"][str(number)]["callers"][0].endswith(own)
    assert "(device_put at program.py:" in told["placed"]["message"]
    assert "differs in the value given to device_put: process 0: float32[] 0.0" in told["placed"]["message"]
    assert "argument 0 differs: process 0: params['kernel']; process 1: params['scale']" in told["keys"]["message"]
    assert "in multihost_utils.assert_equal, at ['seed']: process 0: int32[] 0" in told["seed_for_jax"]["message"]
    sides = "process 0: float32[3] [0.0, 0.0, 0.0]; process 1: float32[3] [1.0, 1.0, 1.0]"
    where = "in the state, at ['opt'][0]['nu']"
    assert f"{where}: {sides}." in told["state"]["message"]
    assert "differs in the weights: process 0: float32[300, 1000] digest " in told["weights"]["message"]
    missing = "in the state: only process 1 has ['b'] (process 0: 1 leaf; process 1: 2 leaves)."
    assert missing in told["structure"]["message"]
    assert "(process_allgather at program.py:" in told["gathered"]["message"]
    assert "(broadcast_one_to_all at program.py:" in told["two_sources"]["message"]
    assert "processes 0-1 pass is_source=True" in told["two_sources"]["message"]
    assert "differs in the shape of batch: " in told["pmap_of_a_partial"]["message"]
    assert "(Loss at program.py:" in told["callable_object"]["message"]
    # The modules of this case differ in a constant, which has no location of its own before JAX 0.9.
    sources = {side["source"] for side in told["program"]["module"]["sides"] if side["source"]}
    assert {int(source.rpartition(":")[2]) for source in sources} == {lines["program"][0]}


def test_a_function_that_one_process_ran_without_a_collective(tmp_path: Path) -> None:
    program = """
        x = jax.device_put(np.ones(4, np.float32), NamedSharding(mesh, P("data") if me else P()))
        def total(x):
            return jnp.sum(x)
        print(value(jax.jit(total)(x)))  # of both
        """
    for mode in ("lockstep", "background"):
        run = rehearse(tmp_path, program, options=("--mode", mode))
        assert (run.status, run.verdict) == (3, ("diverged", "arguments")), run.output
        assert (run.line(0), run.line(1)) == (run.marked("of both"), run.marked("of both"))
        message = run.report["message"].replace("PartitionSpec", "P")  # as older JAX writes it
        assert (
            "differs in the spec of x: process 0: P() over (data: 2); process 1: P('data',) over (data: 2)" in message
        )
        assert "Process 0 ran it as a program without a collective" in run.report["message"]


# Each case ends in a call of both processes, which proves that they differ.
PLACEMENTS = """
import json
from spmdlint import runtime_checks

grid = np.array(jax.devices()).reshape(2, 2)
full = np.ones((4, 4), np.float32)

kept = []  # the lowered modules are known as long as the programs

def jitted(*args, **named):
    kept.append(jax.jit(*args, **named))
    return kept[-1]

def held(sharding):
    return jax.make_array_from_callback((4, 4), sharding, lambda place: full[place])

def axes_of_the_mesh():
    mesh = Mesh(grid, ("data", "model") if me == 0 else ("model", "data"))
    summed = jax.shard_map(
        lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data", "model"), out_specs=P(None, "model")
    )
    return jitted(summed)(held(NamedSharding(mesh, P("data", "model"))))  # axes_of_the_mesh

def in_shardings():
    spec = P("data") if me == 0 else P(None, "data")
    mean = jitted(lambda x: jnp.mean(x, axis=0), in_shardings=NamedSharding(mesh, spec))
    return mean(held(NamedSharding(mesh, spec)))  # in_shardings

def local_axis():
    mesh = Mesh(grid, ("host", "local"))
    axis = "host" if me == 0 else "local"
    whole = P(("host", "local"))
    reduced = jax.shard_map(lambda x: jax.lax.psum(x, axis), mesh=mesh, in_specs=whole, out_specs=whole)
    return jitted(reduced)(held(NamedSharding(mesh, whole)))  # local_axis

os.environ.pop("SPMDLINT_RUNTIME_CHECKS")  # of --mode off, which overrules the program
for case in (axes_of_the_mesh, in_shardings, local_axis):
    runtime_checks.enable("lockstep", on_divergence="raise")
    try:
        case()
        jax.jit(jnp.min)(everywhere([1, 2]))
        print("wrong value", flush=True)
    except runtime_checks.DivergenceError as error:
        if me == 0:
            print("told", json.dumps([case.__name__, error.report.as_data()]), flush=True)
    runtime_checks.disable()
"""


def test_placements_with_which_one_process_has_nothing_to_exchange(tmp_path: Path) -> None:
    run = rehearse(tmp_path, PLACEMENTS, devices=2, options=("--mode", "off"))
    told = reports_of_cases(run)
    assert {case: report["kind"] for case, report in told.items()} == {
        "axes_of_the_mesh": "arguments",
        "in_shardings": "arguments",
        "local_axis": "program",
    }, run.output
    for case, report in told.items():
        assert [report["processes"][one]["line"] for one in ("0", "1")] == [run.marked(case)] * 2
        assert "Process 1 ran it as a program without a collective" in report["message"]
        assert "then it calls" in report["processes"]["1"]["detail"]


def test_calls_on_different_devices_are_different_calls(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        grid = np.array(jax.devices()).reshape(2, 2)
        halves = [NamedSharding(Mesh(grid[:, part], ("d",)), P("d")) for part in (0, 1)]
        summed = jax.jit(lambda x: jnp.sum(x))
        held = [jax.make_array_from_process_local_data(half, np.ones(1, np.float32)) for half in halves]
        for part in (me, 1 - me):
            print(value(summed(held[part])))
        """,
        devices=2,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "sequence")), run.output
    assert "process 0: on the devices [" in run.report["message"], run.output


STORED = """
import pickle
from jax.experimental import serialize_executable
x = everywhere([1, 2])
def compiled(function):
    return jax.jit(function).lower(x).compile()
def stored(function):
    kept = pickle.dumps(serialize_executable.serialize(compiled(function)))
    return serialize_executable.deserialize_and_load(*pickle.loads(kept))
def build(x):
    return jnp.sum(x) * 3
"""


def test_loaded_and_compiled_executables_of_one_build_agree(tmp_path: Path) -> None:
    program = "run = stored(build) if me == 1 else compiled(build)\nfor _ in range(3):\n    print(value(run(x)))\n"
    run = rehearse(tmp_path, STORED + program)
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output


def test_a_circle_of_waits_on_three_processes(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        pair = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("d",)), P("d"))
        summed, greatest = jax.jit(lambda x: jnp.sum(x)), jax.jit(lambda x: jnp.max(x))
        mine = jax.make_array_from_process_local_data(pair, np.ones(2, np.float32)) if me < 2 else None
        if me == 0:
            summed(mine)  # first
        greatest(everywhere([1, 2]))  # second
        if me == 1:
            summed(mine)
        """,
        processes=3,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "sequence")), run.output
    assert (run.line(0), run.line(1)) == (run.marked("first"), run.marked("second"))
