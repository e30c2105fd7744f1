"""Values that JAX believes to be the same on all processes: told by the argument where they differ, in both modes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.runtime.jobs import rehearse

# Each case is a job of its own for the checks, which are switched on and off by the program.
CASES = """
import json
from jax.experimental import multihost_utils
from spmdlint import runtime_checks
for name in ("SPMDLINT_RUN_FOLDER", "SPMDLINT_RUNTIME_CHECKS"):
    os.environ.pop(name, None)
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map
whole = NamedSharding(mesh, P())
x = everywhere(np.ones((4, 3)) + me)
w = jax.jit(lambda: jnp.ones((3, 2)), out_shardings=whole)()
loss = jax.jit(lambda w, x: ((x @ w) ** 2).mean())
scaled = jax.jit(lambda x, n: (x * n).sum())
own = np.random.default_rng(me).normal(size=(3, 2)).astype("f")
own_key = lambda: jax.random.fold_in(jax.jit(lambda: jax.random.PRNGKey(0), out_shardings=whole)(), me)
summed = jax.jit(shard_map(lambda a: jax.lax.psum(a, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()))
rows_of = jax.jit(lambda w, x: x @ w)
averaged = jax.pmap(lambda r, lr: jax.lax.pmean(r.mean() * lr, "i"), axis_name="i", in_axes=(0, None))
both = jax.jit(lambda x, n: x.sum() + n.sum())
def drifted(by):
    copies = [jax.device_put(np.full((3, 2), by * me, "f"), device) for device in jax.local_devices()]
    return jax.make_array_from_single_device_arrays((3, 2), whole, copies)
def under_the_mesh(make):
    with (getattr(jax, "set_mesh", None) or jax.sharding.use_mesh)(mesh):
        return make()
square = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
halves = lambda value: jax.make_array_from_callback(value.shape, NamedSharding(square, P("model")), lambda i: value[i])
broadcast = multihost_utils.broadcast_one_to_all
scaled_by = jax.jit(lambda x, n: x.sum() * n.sum())
noisy = jax.jit(lambda x, key: (x + jax.random.normal(key, x.shape)).sum())
def run(cases):
    for name, case in cases.items():
        runtime_checks.enable(sys.argv[1], on_divergence="raise")
        told = ["clean"]
        try:
            jax.block_until_ready(case())
            runtime_checks.disable()
        except runtime_checks.DivergenceError as error:
            told = [error.report.kind, error.report.message, *error.report.notes]
            runtime_checks.disable()
        if me == 0:
            print("told", json.dumps([name, *told]), flush=True)
"""

DIFFER: dict[str, tuple[str, str | None]] = {
    "callback": ("loss(jax.make_array_from_callback((3, 2), whole, lambda i: own[i]), x)", "w"),
    "local data": ("loss(jax.make_array_from_process_local_data(whole, own), x)", "w"),
    "host local": ("loss(multihost_utils.host_local_array_to_global_array(own, mesh, P()), x)", "w"),
    "a number": ("scaled(x, me)", "n"),
    "an array": ("scaled(x, np.full(3, me, 'f'))", "n"),
    "placed nowhere": ("scaled(x, jnp.full(3, me, 'f'))", "n"),
    "G times a number": ("float((x * (1.0 + me)).sum())", "a"),
    "G plus H": ("float((x + np.full(3, me, 'f')).sum())", "a"),
    "a seed": ("noisy(x, jax.random.PRNGKey(me))", "key"),
    "a typed key": ("noisy(x, jax.random.key(me))", "key"),
    "folded in": ("loss(w + jax.random.normal(own_key(), (3, 2)), x)", "w"),
    "replicated by jit": ("loss(jax.jit(lambda a: a * 2, in_shardings=whole)(own), x)", "w"),
    "split by jit": ("float(jnp.sum(jax.jit(lambda a: a * 2, in_shardings=rows)(jnp.full((8, 3), me))))", "a"),
    "pmap": ("averaged(np.ones((2, 3), 'f'), 0.1 * (1 + me))", "lr"),
    "a number alone": ("jax.jit(lambda x, n: (x * 0 + n).sum())(x, me)", "n"),
    "shard_map": ("summed(np.full((8, 3), me, 'f'))", "a"),
    "larger than what is read": ("both(x, np.arange(12288, dtype='f').reshape(64, 64, 3)[..., :: 1 - 2 * me])", "n"),
    "the sixth": ("[scaled(x, 0.1 * (1 + (k == 5) * me)) for k in range(8)]", "n"),
    "a number closed over": ("jax.jit(lambda x: (x * (me + 1)).sum())(x)", None),
    "an array closed over": ("[jax.jit(lambda x: (x * n).sum())(x) for n in [np.full(3, me, 'f')]]", None),
    "halves": ("scaled_by(x, halves(own[:2]))", "n"),
    "drifted": ("[runtime_checks.check_replicas({'w': drifted(number)}) for number in range(2)]", "['w']"),
    "stacked": (
        "runtime_checks.check_replicas(jax.pmap(lambda a: a * 2)(np.full((2, 3), me)), stacked=True)",
        "the array",
    ),
}


def told(folder: Path, mode: str, cases: dict[str, str], **options: object) -> dict[str, list[str]]:
    lines = "\n".join(f"    {name!r}: lambda: {code}," for name, code in cases.items())
    program = f"sys.argv[1:] = [{mode!r}]\n{CASES}\nrun({{\n{lines}\n}})\n"
    run = rehearse(folder, program, devices=2, options=("--mode", "off"), **options)  # type: ignore[arg-type]
    found = [json.loads(line.partition("told ")[2]) for line in run.output.splitlines() if "told [" in line]
    assert [name for name, *_ in found] == list(cases), run.output
    return {name: words for name, *words in found}


SAID = {
    "a number": "process 0: 0; process 1: 1.",
    "folded in": "fold_in at program.py",
    "the sixth": "call 6 of processes 0-1 ",
}
NOTED = {
    "the sixth": "Up to call 5 of <lambda>, what was compared was the same.",
    "drifted": "Up to call 1 of check_replicas, what was compared was the same.",
}


def shared_out(cases: Iterable[str]) -> pytest.MarkDecorator:
    """Each case in one of the modes, and in make test-all in the other one as well; a quarter of them in one job."""
    quarters = [tuple(cases)[number::4] for number in range(4)]
    modes = list(zip(["lockstep", "background"] * 2, quarters, strict=True))
    others = list(zip(["background", "lockstep"] * 2, quarters, strict=True))
    long = [pytest.param(*each, marks=pytest.mark.long) for each in others]
    return pytest.mark.parametrize(("mode", "names"), [*modes, *long])


@shared_out(DIFFER)
def test_the_argument_that_differs_is_told(mode: str, names: tuple[str, ...], tmp_path: Path) -> None:
    found = told(tmp_path, mode, {name: DIFFER[name][0] for name in names})
    for name in names:
        (kind, message, *notes), argument = found[name], DIFFER[name][1]
        if argument is None:  # it is a constant of the program
            assert (kind, "differs in its lowered program" in message) == ("program", True), (name, message)
            continue
        assert kind == "value", (name, message)
        assert f" differs in the value of {argument}: " in message, (name, message)
        assert "process 0: " in message, (name, message)
        assert "process 1: " in message, (name, message)
        if name in SAID:
            assert SAID[name] in message, (name, message)
        if name in NOTED:
            assert NOTED[name] in notes, (name, notes)
    if "the sixth" in names:
        assert found["the sixth"][1].startswith(SAID["the sixth"])


RIGHT = {
    "read by one": "[me == 0 and (jax.device_get(w), print(w, x.shape), float(n)) for n in [loss(w, x)]]",
    "the same seed": "loss(jax.make_array_from_callback((3, 2), whole, lambda i: np.ones((3, 2), 'f')[i]), x)",
    "equal values put": "loss(w * jax.device_put(np.float32(2), whole), jax.device_put(np.zeros((8, 3), 'f'), rows))",
    "gathered": "multihost_utils.process_allgather(np.array(3 + me)).sum()",
    "broadcast": "scaled(x, multihost_utils.broadcast_one_to_all(np.float32(me)))",
    "saved by one": "[me == 0 and print(a) for a in [multihost_utils.process_allgather(rows_of(w, x), tiled=True)]]",
    "own shards": "np.concatenate([np.asarray(shard.data) for shard in x.addressable_shards]).sum()",
    "read where it is whole": "x.is_fully_addressable or multihost_utils.process_allgather(x, tiled=True)",
    "printed inside": "jax.jit(lambda x: jax.debug.print('sum {}', x.sum()) or x * 2)(x)",
    "made by all": "under_the_mesh(lambda: jnp.zeros((8, 3)).sum())",
    "own rows": "loss(w, everywhere(np.arange(24).reshape(8, 3)[me * 4:(me + 1) * 4]))",
    "own noise": "loss(w, everywhere(jax.random.normal(jax.random.key(me), (4, 3)) * jnp.float32(2)))",
    "constants": "jax.jit(lambda x, w, b, lr: (x @ w * lr + b).sum())(x + jnp.ones(3), w, jnp.zeros(2), 0.1)",
    "own computation": "float(jax.jit(jnp.sum)(np.asarray(w) * me))",
    "pmap": "jax.pmap(lambda r: jax.lax.pmean(r.mean(), 'i'), axis_name='i')(np.ones((2, 3), 'f') * me)",
    "logged": "me == 0 and print('scaled', (x * 3.0).shape)",
    "agreed before": "scaled(x, int(multihost_utils.process_allgather(np.int32(1000 * me)).max()))",
    "not used": "jax.jit(lambda x, unused: x.sum())(x, time.time() + me)",
    "no more than its precision": "scaled(x, 0.1 + 1e-12 * me)",
    "another kind": "scaled(x, np.full((), 2, 'f') if me else jnp.full((), 2, 'f'))",
    "a local number": "scaled(x, runtime_checks.local(me))",
    "zero of either sign": "both(x, np.zeros(3, 'f') * (1 - 2 * me))",
    "a local leaf": "scaled(x, runtime_checks.local({'n': np.ones(3) * me})['n'])",
    "a local array": "loss(runtime_checks.local(jax.make_array_from_callback((3, 2), whole, lambda i: own)), x)",
    "on purpose": "loss(jax.make_array_from_callback((3, 2), whole, lambda i: own), x),  # spmdlint: ignore[SPMD504]",
    "equal halves": "scaled_by(x, halves(np.ones((2, 3), 'f')))",
    "stacked": "runtime_checks.check_replicas(jax.pmap(lambda a: a * 2)(np.ones((2, 3), 'f')), stacked=True)",
    "replicas": "runtime_checks.check_replicas({'w': w, 'x': x, 'n': 3, 'key': jax.random.key(me)}, every=2)",
}


@shared_out(RIGHT)
def test_what_is_the_same_or_may_differ_is_no_difference(mode: str, names: tuple[str, ...], tmp_path: Path) -> None:
    found = told(tmp_path, mode, {name: RIGHT[name] for name in names})
    assert {name: words for name, words in found.items() if words != ["clean"]} == {}


SOURCES = {
    "all": "broadcast(np.float32(me), is_source=True)",
    "none": "broadcast(np.float32(me), is_source=False)",
    "the fourth": "[broadcast(np.float32(me), is_source=k == 3 or me == 0) for k in range(6)]",
    "one": "[broadcast(np.float32(me)) for _ in range(3)]",
    "another one": "broadcast(np.float32(me), is_source=me == 1)",
}


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_broadcast_has_one_source(mode: str, tmp_path: Path) -> None:
    found = told(tmp_path, mode, SOURCES)
    assert (found.pop("one"), found.pop("another one")) == (["clean"], ["clean"])
    for name, (kind, message, *_) in found.items():
        words = "no process passes" if name == "none" else "processes 0-1 pass"
        assert (kind, f"{words} is_source=True" in message) == ("arguments", True), (name, message)
    assert found["the fourth"][1].startswith("call 4 of processes 0-1 "), found["the fourth"]


def test_arrays_placed_by_the_program_are_compared_in_lockstep(tmp_path: Path) -> None:
    found = told(tmp_path, "lockstep", {"placed": "loss(drifted(1), x)", "equal": "loss(drifted(0), x)"})
    kind, message, *_ = found["placed"]
    assert (kind, " differs in the value of w: process 0: " in message) == ("value", True), message
    assert found["equal"] == ["clean"]


def test_rows_that_two_of_four_processes_hold_are_compared_between_these(tmp_path: Path) -> None:
    program = """
    square = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    def batch(number):
        return jax.make_array_from_process_local_data(NamedSharding(square, P("data")), np.full((1, 3), number, "f"))
    total = jax.jit(lambda x: x.sum())
    print(total(batch(me // 2)))
    print(total(batch(me)))
    """
    run = rehearse(tmp_path, program, processes=4, options=("--mode", "lockstep"))
    assert (run.status, run.verdict) == (3, ("diverged", "value")), run.output
    assert run.report["message"].startswith("call 2 of processes 0-3 "), run.report["message"]
    assert " differs in the value of x: " in run.report["message"], run.report["message"]


ORBAX = """
class StandardSave:
    def __init__(self, item):
        self.item = item
class Checkpointer:
    def save(self, directory, *args, **named):
        print("saved", directory, flush=True)
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_replicas_are_compared_before_a_checkpoint_if_asked_for(mode: str, tmp_path: Path) -> None:
    (tmp_path / "orbax" / "checkpoint").mkdir(parents=True)
    (tmp_path / "orbax" / "checkpoint" / "__init__.py").write_text(ORBAX)
    program = (
        f"sys.argv[1:] = [{mode!r}]\n{CASES}\n"
        """
runtime_checks.enable(sys.argv[1], on_divergence="exit")
import orbax.checkpoint as ocp
def step(weights):
    return weights + 1
for number in range(2):
    state = ocp.StandardSave({"step": number, "w": drifted(number)})
    ocp.Checkpointer().save(f"of {number}", args=state)
runtime_checks.disable()
    """
    )
    asked = {"SPMDLINT_VALUES": "sample,checkpoints"}
    run = rehearse(tmp_path, program, devices=2, options=("--mode", "off"), environment=asked)
    assert run.status == 3, run.output
    assert " in the value of ['args']['w']: " in run.output
    assert run.output.count("saved of 0") == 2
    assert mode == "background" or "saved of 1" not in run.output
    plain = rehearse(tmp_path, program, devices=2, options=("--mode", "off"))
    assert (plain.status, plain.output.count("saved of 1")) == (0, 2), plain.output


LARGE = "both(x, np.full(4096, me))"
OPTIONS = [
    ("lockstep", {"SPMDLINT_LOCAL_VALUES": "other, <lambda>"}, "jax.jit(lambda x, n: (x * n).sum())(x, me)", "clean"),
    ("background", {"SPMDLINT_VALUES": "off"}, "jax.jit(lambda x, n: (x * n).sum())(x, me)", "clean"),
    ("lockstep", {"SPMDLINT_VALUES": "small"}, LARGE, "clean"),
    ("background", {}, LARGE, "value"),
]
OTHER_MODE = {"lockstep": "background", "background": "lockstep"}
IN_BOTH = [*OPTIONS, *(pytest.param(OTHER_MODE[mode], *rest, marks=pytest.mark.long) for mode, *rest in OPTIONS)]


@pytest.mark.parametrize(("mode", "options", "case", "found"), IN_BOTH)
def test_an_option_leaves_functions_or_all_values_out(
    mode: str, options: dict[str, str], case: str, found: str, tmp_path: Path
) -> None:
    assert told(tmp_path, mode, {"one": case}, environment=options)["one"][0] == found


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_large_arrays_are_read_in_one_of_n_calls(mode: str, tmp_path: Path) -> None:
    """The value is none of the sample."""
    calls = "[both(x, np.where((np.arange(4096) == 5) & (call == {}), me, 0)) for call in range(1, 8)]"
    cases = {f"in call {number}": calls.format(number) for number in (3, 4)}
    found = told(tmp_path, mode, cases, environment={"SPMDLINT_VALUES": "all:3"})
    assert found["in call 3"] == ["clean"]
    kind, message, *_ = found["in call 4"]
    assert kind == "value"
    assert message.startswith("call 4 of processes 0-1 ")
    assert " differs in the value of n: " in message
    assert told(tmp_path, mode, {"sampled": calls.format(4)}) == {"sampled": ["clean"]}


def test_what_is_made_of_an_array_that_one_process_has_not_read_is_not_compared(tmp_path: Path) -> None:
    program = """
    scaled, total = jax.jit(lambda x, n, by: x * n.sum() * by), jax.jit(lambda x: x.sum())
    for other in (1, 2):  # for process 0 the second call is the second one, for process 2 the first, which it reads
        if me in (0, other):
            pair = NamedSharding(Mesh(np.array([jax.devices()[0], jax.devices()[other]]), ("data",)), P("data"))
            x = jax.jit(lambda: jnp.ones(2), out_shardings=pair)()
            print(total(scaled(x, np.ones(4096, np.float32), 2.0)))
    """
    every = {"SPMDLINT_VALUES": "all:3"}
    run = rehearse(tmp_path, program, processes=3, options=("--mode", "lockstep"), environment=every)
    assert (run.status, run.output.count("16384.0")) == (0, 4), run.output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_what_a_mapped_function_makes_of_a_value_has_its_name(mode: str, tmp_path: Path) -> None:
    program = """
    def averaged(row, rate):
        return jax.lax.pmean(row.mean() * rate, "i")
    step = jax.pmap(averaged, axis_name="i", in_axes=(0, None))
    for n in range(3):
        print(step(np.ones((len(jax.local_devices()), 3), np.float32), 0.1 * (1 + me)))
    """
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.verdict) == (3, ("diverged", "value")), run.output
    arguments = [one for process in run.report["processes"].values() for one in process["arguments"]]
    made = {one["origin"] and one["origin"].partition(" at ")[0] for one in arguments if one.get("value")}
    assert made in ({"averaged"}, {None}), "older releases of JAX make no array of it before the call"


def test_values_that_only_some_processes_tell_do_not_end_the_comparison_of_the_calls(tmp_path: Path) -> None:
    program = """
    from jax._src import distributed
    from spmdlint import runtime_checks
    x, told = everywhere([1, 2]), np.ones(3, np.float32)
    given = jax.jit(lambda x, n: (x.sum() * n).sum())
    jax.block_until_ready(given(x, told if me else runtime_checks.local(told)))
    for n in range(2):
        jax.block_until_ready(given(x, told if me else runtime_checks.local(told)))
        time.sleep(0.1)
    limit = time.monotonic() + 60
    client = distributed.global_state.client
    while me == 0 and not any("no longer compared" in note for note in runtime_checks.status().notes):
        assert time.monotonic() < limit
        time.sleep(0.05)
    client.key_value_set("noted", "") if me == 0 else client.blocking_key_value_get("noted", 60_000)
    others = [jax.jit(lambda x: x.sum()), jax.jit(lambda x: x.max())]
    jax.block_until_ready(others[me](x))
    time.sleep(60)  # the job runs: nothing else would look at its calls now
    """
    run = rehearse(tmp_path, program, options=("--mode", "background"))
    assert (run.status, run.verdict) == (3, ("diverged", "program")), run.output
    assert [note.startswith("What calls of process 1 are given is no longer") for note in run.report["notes"]] == [True]
    assert run.seconds < 60
