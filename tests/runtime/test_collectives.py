"""Which collectives stay within a process: read from modules that this JAX lowers and compiles, not from samples."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from spmdlint.runtime_checks.calls.communication import (
    AxisPart,
    Communication,
    along_axes,
    compiled_communicates,
    cut,
    iota,
)
from tests.runtime.jobs import ROOT, rehearse

YES, NO, UNKNOWN = Communication.YES, Communication.NO, Communication.UNKNOWN

# One process with 64 devices stands for 4 hosts of 16: which process owns a device is only a number to the readers.
LOWER = """
import json, os, sys
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[1]}"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from spmdlint.runtime_checks.calls.communication import compiled_communicates
from spmdlint.runtime_checks.calls.communication import lowered_communicates

HOSTS = 4
LOCAL = jax.device_count() // HOSTS
GRID = np.array(jax.devices()).reshape(HOSTS, LOCAL)
BOTH = P(("host", "local"))
ORDERS = {"usual": GRID, "reversed": GRID[::-1, ::-1], "hosts last": GRID.T, "shuffled": None}
ORDERS["shuffled"] = np.random.default_rng(0).permutation(GRID.reshape(-1)).reshape(HOSTS, LOCAL)


def mapped(body, mesh, result):
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    try:
        return shard_map(body, mesh=mesh, in_specs=BOTH, out_specs=result, check_vma=False)
    except TypeError:
        return shard_map(body, mesh=mesh, in_specs=BOTH, out_specs=result, check_rep=False)


def ring(many):
    return [(n, (n + 1) % many) for n in range(many)]


def bodies(axis, many):
    halves = [list(range(many // 2)), list(range(many // 2, many))]
    yield "all_reduce", lambda v: lax.psum(v, axis)
    yield "all_reduce in groups", lambda v: lax.psum(v, axis, axis_index_groups=halves)
    yield "all_gather", lambda v: lax.all_gather(v, axis, tiled=True)[:1]
    yield "reduce_scatter", lambda v: lax.psum_scatter(jnp.tile(v, many), axis, tiled=True)
    yield "all_to_all", lambda v: lax.all_to_all(jnp.tile(v, many), axis, 0, 0, tiled=True)[:1]
    yield "collective_permute", lambda v: lax.ppermute(v, axis, ring(many))
    yield "collective_broadcast", lambda v: lax.pbroadcast(v, axis, 1)
    yield "partition_id", lambda v: v + lax.axis_index(axis)


def told(lowered, process_of):
    operation = lowered.compiler_ir("stablehlo").operation
    seen = lowered_communicates(operation.get_asm(enable_debug_info=False), process_of).value
    compiled = compiled_communicates(compiled_text(lowered), process_of).value
    return [seen, compiled]


def compiled_text(lowered):
    return lowered.compile().runtime_executable().hlo_modules()[0].to_string()


def owner(device):
    return device.id // LOCAL


found = {}
for order, devices in ORDERS.items():
    if order == "hosts last":
        devices = devices.reshape(HOSTS, LOCAL)
    mesh = Mesh(devices, ("host", "local"))
    process_of = [owner(device) for device in devices.flat]
    along = {"local": any(len({owner(d) for d in row}) > 1 for row in devices)}
    along["host"] = any(len({owner(d) for d in column}) > 1 for column in devices.T)
    for axis, many in (("local", LOCAL), ("host", HOSTS)):
        for name, body in bodies(axis, many):
            argument = jax.ShapeDtypeStruct((devices.size,), jnp.float32)
            try:
                lowered = jax.jit(mapped(body, mesh, BOTH)).lower(argument)
            except (NotImplementedError, NameError, AttributeError):
                continue  # this JAX does not have it
            due = "yes" if along[axis] and name != "partition_id" else "no"
            if "in groups" in name and due == "yes":
                half = many // 2
                rows = devices if axis == "local" else devices.T
                parts = [part for row in rows for part in (row[:half], row[half:])]
                due = "yes" if any(len({owner(d) for d in part}) > 1 for part in parts) else "no"
            found[f"{order}, {name} over {axis}"] = [due, *told(lowered, process_of)]
    for given, wanted in ((P("host", "local"), P("host")), (P("host"), P()), (P("host", "local"), P("local", "host"))):
        placed = [NamedSharding(mesh, spec) for spec in (given, wanted)]
        moved = jax.jit(lambda v: v * 2, in_shardings=placed[0], out_shardings=placed[1])
        lowered = moved.lower(jax.ShapeDtypeStruct((devices.size, devices.size), jnp.float32))
        gathered = {"local"} if wanted == P("host") else {"host"} if wanted == P() else {"host", "local"}
        due = "yes" if any(along[axis] for axis in gathered) else "no"
        found[f"{order}, {given} to {wanted}"] = [due, *told(lowered, process_of)]
replicated = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i", devices=list(GRID.flat))
lowered = replicated.lower(jax.ShapeDtypeStruct((GRID.size, 2), jnp.float32))
found["pmap"] = ["yes", *told(lowered, [owner(device) for device in GRID.flat])]
groups = [list(range(n * LOCAL, (n + 1) * LOCAL)) for n in range(HOSTS)]
within = jax.pmap(lambda v: lax.psum(v, "i", axis_index_groups=groups), axis_name="i", devices=list(GRID.flat))
lowered = within.lower(jax.ShapeDtypeStruct((GRID.size, 2), jnp.float32))
found["pmap in groups"] = ["no", *told(lowered, [owner(device) for device in GRID.flat])]
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=[8, 64], ids=["8 devices", "64 devices"])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    script = tmp_path_factory.mktemp("lower") / "lower.py"
    script.write_text(LOWER)
    words = [sys.executable, str(script), str(request.param)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_collective_of_this_jax_is_read(answers: dict[str, list[str]]) -> None:
    """Lists, tensors of more than 100 numbers, which MLIR prints as hexadecimal bytes, and axes of a mesh."""
    wrong = {}
    for name, (due, lowered, compiled) in answers.items():
        # What the partitioner inserts is in the compiled module alone.
        expected = ("no",) if " to " in name else (due,)
        if lowered not in expected or compiled != due:
            wrong[name] = (due, lowered, compiled)
    assert not wrong
    assert sum("collective_permute" in name for name in answers) == 8
    assert {due for due, _, _ in answers.values()} == {"yes", "no"}


def hlo(line: str, replicas: int = 1) -> str:
    return f"HloModule jit_f, replica_count={replicas}, num_partitions=4\n\nENTRY main {{\n  {line}\n}}\n"


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true", YES),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true", NO),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true", NO),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true", YES),
        # With a channel and numbers of replicas, all partitions take part; without one, only this partition's replicas.
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0}}", YES),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={}", YES),
        ("%r = f32[] all-reduce(%p), replica_groups={{0}}", NO),
        ("%r = f32[] all-reduce(%p), channel_id=0, replica_groups={{0}}", NO),
        ("%r = f32[4] collective-permute(%p), channel_id=1, source_target_pairs={{0,1},{1,0}}", NO),
        ("%r = f32[4] collective-permute(%p), channel_id=1, source_target_pairs={{0,3},{3,0}}", YES),
        ("%r = f32[2] all-gather-start(%p), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true", YES),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['host'=2,'local'=2] {'local'}", NO),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['host'=2,'local'=2] {'host'}", YES),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['a'=4] {'a':(1)2}", YES),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['a'=4] {'a':(2)2}", NO),
        ("%r = f32[1] all-reduce(%p), replica_groups=mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'a'}", NO),
        ("%r = f32[1] all-reduce(%p), replica_groups=mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'b'}", YES),
        ("%r = f32[1] all-reduce(%p), replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}", NO),
        ("%r = f32[1] all-reduce(%p), replica_groups=mesh['a'=2,'b'=2], device_ids=([4]) {'a'}", YES),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['a'=4], device_ids=(new) {'a'}", UNKNOWN),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=something new", UNKNOWN),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0,9}}, use_global_device_ids=true", UNKNOWN),
        ('%r = f32[] custom-call(%p), custom_call_target="tpu_custom_call"', UNKNOWN),
        ("%r = (f32[4], u32[], token[]) send(%p, %t), channel_id=1", UNKNOWN),
        ("%r = (f32[4], u32[], token[]) send(%p, %t), channel_id=1, is_host_transfer=true", NO),
        ("%r = token[] send(%p), frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{2,3}}}", NO),
        ("%r = token[] send(%p), frontend_attributes={_xla_send_recv_source_target_pairs={{1,2}}}", YES),
        ("%r = f32[] add(%p, %all-reduce.3)", NO),
        ("%r = u32[] partition-id()", NO),
        ("%r = f32[] fusion(%p), kind=kLoop, calls=%fused", NO),
    ],
)
def test_the_forms_of_groups_in_a_compiled_module(line: str, due: Communication) -> None:
    assert compiled_communicates(hlo(line), (0, 0, 1, 1)) is due


def test_one_collective_between_processes_decides_whatever_is_unknown_beside_it() -> None:
    unread = "%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=something new"
    across = "%q = f32[4] collective-permute(%p), channel_id=2, source_target_pairs={{0,3}}"
    assert compiled_communicates(hlo(f"{unread}\n  {across}"), (0, 0, 1, 1)) is YES


def test_groups_of_replicas_run_once_in_each_partition() -> None:
    """Two replicas of two partitions: replicas 0 and 1 of a partition belong to different processes."""
    line = "%r = f32[] all-reduce(%p), replica_groups={{0,1}}"
    assert compiled_communicates(hlo(line, replicas=2), (0, 0, 1, 1)) is YES
    assert compiled_communicates(hlo(line, replicas=2), (0, 1, 0, 1)) is NO


def test_axes_and_their_parts() -> None:
    sizes = {"a": 2, "b": 4}
    assert along_axes(sizes, [AxisPart("a")]) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert along_axes(sizes, [AxisPart("b", 2, 2)]) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert along_axes(sizes, [AxisPart("b", 1, 2)]) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert along_axes(sizes, [AxisPart("a"), AxisPart("b")]) == [list(range(8))]
    for parts in ([AxisPart("c")], [AxisPart("b", 1, 3)], []):
        assert along_axes(sizes, parts) is None
    assert cut(iota([4, 2], [1, 0]), 2, 4) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert cut(iota([4, 2]), 2, 3) is None


WITHIN = """
grid = Mesh(np.array(jax.devices()).reshape(count, -1), ("host", "local"))
both = P(("host", "local"))
many = len(jax.local_devices())
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map
ring = [(n, (n + 1) % many) for n in range(many)]
shift = jax.jit(shard_map(lambda v: jax.lax.ppermute(v, "local", ring), mesh=grid, in_specs=both, out_specs=both))
x = jax.make_array_from_process_local_data(NamedSharding(grid, both), np.arange(many, dtype=np.float32))
for _ in range(1 + 2 * me):
    jax.block_until_ready(shift(x))
from jax.experimental import multihost_utils
multihost_utils.sync_global_devices("end")
print("first", float(shift(x).addressable_shards[0].data[0]), "of", many)
"""


@pytest.mark.parametrize(
    ("mode", "devices"),
    [
        ("lockstep", 2),
        ("background", 51),  # more than 100 numbers, which MLIR prints as bytes
        pytest.param("lockstep", 64, marks=pytest.mark.long),
    ],
)
def test_a_permutation_within_each_of_two_processes_is_their_own(mode: str, devices: int, tmp_path: Path) -> None:
    run = rehearse(tmp_path, WITHIN, devices=devices, options=("--mode", mode))
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
    assert run.output.count(f"first {devices - 1}.0 of {devices}") == 2


UNDECIDED = """
from spmdlint.runtime_checks.intercept import observer
from spmdlint.runtime_checks.calls.communication import Communication
seen = observer.compiled_communicates
def blind(text, process_of):  # what a runtime with modules of an unknown form would give
    return Communication.UNKNOWN if "jit_mystery" in text else seen(text, process_of)
observer.compiled_communicates = blind
@jax.jit
def mystery(v):
    return v * 2
x = everywhere([1.0])
for _ in range(1 + me):
    mystery(x).block_until_ready()
print(float(jax.jit(jnp.sum)(x)))
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_nothing_is_proven_from_a_call_that_may_stay_within_its_process(mode: str, tmp_path: Path) -> None:
    run = rehearse(tmp_path, textwrap.dedent(UNDECIDED), options=("--mode", mode))
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output


def test_what_is_not_compared_for_want_of_knowledge_is_told(tmp_path: Path) -> None:
    program = UNDECIDED + "\nfrom spmdlint import runtime_checks\nprint('NOTES', runtime_checks.status().notes)\n"
    run = rehearse(tmp_path, program)
    told: list[Any] = [line for line in run.output.splitlines() if "NOTES" in line]
    assert len(told) == 2, run.output
    assert all("not known whether mystery communicates between processes" in line for line in told)


def test_a_barrier_is_one_call(tmp_path: Path) -> None:
    program = """
    from jax.experimental import multihost_utils
    multihost_utils.sync_global_devices("begin")
    multihost_utils.sync_global_devices("end")
    print(multihost_utils.process_allgather(np.float32(me)).sum())
    """
    run = rehearse(tmp_path, textwrap.dedent(program))
    assert run.verdict == ("clean", None), run.output
    assert run.report["message"] == "processes 0-1 made the same 3 parallel calls."


def test_a_gather_of_what_every_process_has_is_told_where_only_one_makes_it(tmp_path: Path) -> None:
    program = """
    from jax.experimental import multihost_utils
    loss = jax.jit(lambda v: v.sum(), out_shardings=NamedSharding(mesh, P()))(everywhere([1.0, 2.0]))
    if me == 0 or "ALL" in os.environ:
        print("loss", multihost_utils.process_allgather(loss, tiled=True))
    """
    run = rehearse(tmp_path, textwrap.dedent(program))
    assert run.verdict == ("clean", None), run.output
    assert "Not every process called process_allgather as often as the others." in run.output
    run = rehearse(tmp_path, textwrap.dedent(program), environment={"ALL": "1"})
    assert run.verdict == ("clean", None), run.output
    assert run.report["notes"] == []
