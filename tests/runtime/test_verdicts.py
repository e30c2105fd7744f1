"""Each kind of divergence on real processes: found before a wrong value is printed, and placed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.runtime.jobs import DIVERGENT, rehearse

DIVERGENT_PROGRAMS = {
    "swapped_calls": "sequence",
    "one_batch_less": "missing",
    "local_padding": "arguments",
    "set_of_parameters": "arguments",
}


@pytest.mark.parametrize("name", DIVERGENT_PROGRAMS)
def test_divergent_programs_of_the_fixtures(name: str, tmp_path: Path) -> None:
    run = rehearse(tmp_path, DIVERGENT / f"{name}.py")
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
            w = step(w, everywhere(np.full(4, i)))
            if me == 0:
                print("log", float(w * 100), float(jnp.linalg.norm(jnp.ones(3))))
        print("done", value(w))
        """,
        devices=2,
    )
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.output.count("done 6.0") == 2


SUMMED = "summed = jax.jit(lambda x: jnp.sum(x))\n"
X64 = """
if os.environ["SPMDLINT_PROCESS"] == "1":
    jax.config.update("jax_enable_x64", True)
"""
KINDS = {
    "dtype": (
        "arguments",
        SUMMED + "summed(jax.make_array_from_process_local_data(rows, np.ones(2, [np.int32, np.float32][me])))",
    ),
    "program": ("program", "jax.jit(lambda x: jnp.sum(x * (2.0 + me)))(everywhere([1, 2]))"),
    "setup": ("setup", X64 + SUMMED + "summed(everywhere([1, 2]))"),
    "value": ("value", "from spmdlint import runtime_checks\nruntime_checks.assert_equal(me, name='the seed')"),
    "barrier": (
        "arguments",
        "from jax.experimental.multihost_utils import sync_global_devices\nsync_global_devices(f'save {me}')",
    ),
    "pmap": (
        "arguments",
        "jax.pmap(lambda x: jax.lax.psum(jnp.sum(x), 'i'), axis_name='i')(np.ones((1, 3 + me), np.float32))",
    ),
}


NEW = tuple(int(part) for part in version("jax").split(".")[:2]) >= (0, 9)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind(name: str, tmp_path: Path) -> None:
    kind, program = KINDS[name]
    run = rehearse(tmp_path, program + "\nprint('wrong value')\n")
    assert (run.status, run.verdict) == (3, ("diverged", kind)), run.output
    assert "wrong value" not in run.output
    assert run.line(0) == run.line(1)
    if name == "program":
        # JAX before 0.9 gives constants no location, and the modules of this case differ in one.
        sources = {side["source"] for side in run.report["module"]["sides"] if side["source"]}
        assert {source.rpartition(":")[2] for source in sources} in ([{str(run.line(0))}] if NEW else [set()])


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
