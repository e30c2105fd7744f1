"""Legal programs are silent: each of these once looked like a divergence to some design of the checks."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from tests.runtime.jobs import Run, rehearse


def is_clean(run: Run) -> None:
    assert (run.status, run.report.get("verdict")) == (0, "clean"), run.output
    assert run.remarks == [f"spmdlint: clean: {run.report['message']}"], run.output


BEGINNING = """
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map
from functools import partial
from jax.experimental import multihost_utils
x = everywhere(np.ones(4))
summed = jax.jit(lambda v: jnp.sum(v))
"""


def is_legal(folder: Path, program: str) -> None:
    """Two processes with two devices each, in both of which ``x`` is an array of 8 ones, and ``summed`` its sum."""
    is_clean(rehearse(folder, BEGINNING + textwrap.dedent(program), devices=2))


def test_what_a_process_does_by_itself(tmp_path: Path) -> None:
    is_legal(
        tmp_path,
        """
        # Host-local sizes differ, shards are equal.
        three = NamedSharding(Mesh(np.array(jax.devices()[:3]), ("d",)), P("d"))
        uneven = jax.make_array_from_process_local_data(three, np.ones((2 if me == 0 else 1, 5), np.float32), (3, 5))
        assert value(jax.jit(jnp.sum)(uneven)) == 15

        # Work on one process's devices, as often as it likes; unnamed and local pmaps.
        local = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i", devices=jax.local_devices())
        for _ in range(2 + me):
            local(np.ones((2, 3), np.float32))
            jax.device_put(np.ones(5), jax.local_devices()[0]) + 1
        for _ in range(2):
            jax.pmap(lambda v: v + 1)(np.ones((2, 3), np.float32))
            jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(np.ones((2, 3), np.float32))

        # A collective within one process's devices.
        grid = Mesh(np.array(jax.devices()).reshape(2, 2), ("host", "local"))
        within = jax.jit(shard_map(lambda v: jax.lax.psum(v, "local"), mesh=grid,
                                   in_specs=P(("host", "local")), out_specs=P("host")))
        gridded = jax.make_array_from_process_local_data(
            NamedSharding(grid, P(("host", "local"))), np.ones(4, np.float32))
        for _ in range(1 + 2 * me):
            within(gridded)
        """,
    )


def test_compiling_is_each_process_s_own_matter(tmp_path: Path) -> None:
    is_legal(
        tmp_path,
        """
        import gc

        # A static object whose repr holds its address, compared by what it is.
        class Config:
            def __init__(self, k): self.k = k
            def __hash__(self): return 7
            def __eq__(self, other): return self.k == other.k
        scaled = partial(jax.jit, static_argnums=0)(lambda config, v: jnp.sum(v) * config.k)
        assert value(scaled(Config(2), x)) == 16

        # Caches emptied and compiled again on one process only; compiled ahead of time on one only.
        for i in range(4):
            jax.jit(lambda v, i=i: jnp.sum(v) + 1)(x)
            if me == 0:
                jax.clear_caches()
                gc.collect()
        ahead = summed.lower(x).compile()
        if me == 1:
            summed.lower(x).compile()
        assert value(ahead(x)) == value(summed(x)) == 8
        """,
    )


def test_jax_works_as_without_the_checks(tmp_path: Path) -> None:
    is_legal(
        tmp_path,
        """
        # Donated buffers, callbacks, randomness.
        step = partial(jax.jit, donate_argnums=0)(lambda w, v: w + jnp.sum(v))
        w = jax.device_put(np.zeros(8, np.float32), NamedSharding(mesh, P()))
        for _ in range(5):
            w = step(w, x)
        talk = jax.jit(lambda v: (jax.debug.print("seen", ordered=False), jnp.sum(v))[1])
        value(talk(x))
        key = jax.random.key(0)
        for _ in range(2):
            key, one = jax.random.split(key)
            jax.jit(lambda k, v: jnp.sum(v) + jax.random.normal(k, ()))(one, x)

        # Transformed and nested uses.
        assert float(jax.grad(lambda a: jax.jit(jnp.sin)(a))(0.0)) == 1.0
        assert summed.lower(x).as_text().startswith("module @jit_")
        assert jax.eval_shape(summed, x).shape == ()
        assert jax.vmap(jax.jit(lambda a: jnp.sum(a)))(jnp.ones((3, 2))).shape == (3,)

        assert multihost_utils.process_allgather(np.float32(me)).tolist() == [0, 1]
        multihost_utils.sync_global_devices("end")
        """,
    )


def test_subset_meshes_on_three_processes(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        left = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("d",)), P("d"))
        right = NamedSharding(Mesh(np.array(jax.devices()[1:]), ("d",)), P("d"))
        total = jax.jit(lambda v: jnp.sum(v))
        for i in range(4):
            if me < 2:
                total(jax.make_array_from_process_local_data(left, np.ones(2, np.float32)))
            total(everywhere([i, i]))
            if me > 0:
                total(jax.make_array_from_process_local_data(right, np.ones(2, np.float32)))
        # A process outside the mesh may make the call, or not, and as often as it likes.
        if hasattr(jax.config, "jax_enable_empty_arrays"):
            jax.config.update("jax_enable_empty_arrays", True)  # what JAX 0.6 needs for it
        seen = jax.make_array_from_callback((4,), left, lambda i: np.ones(4, np.float32)[i], dtype=jnp.float32)
        for _ in range(1 + 2 * (me == 2)):
            total(seen)
        assert value(total(everywhere([1, 2]))) == 9
        """,
        processes=3,
    )
    is_clean(run)


@pytest.mark.parametrize("steps", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_late_and_stopped_processes_and_many_steps(steps: int, tmp_path: Path) -> None:
    """Lateness is told, with where the late process is, and is no verdict."""
    run = rehearse(
        tmp_path,
        """
        import signal, subprocess
        step = jax.jit(lambda w, v: w + jnp.mean(v))
        w, x = jnp.zeros(()), everywhere([1, 1])
        for i in range(STEPS):
            if i == STEPS // 2 and me == 1:
                time.sleep(3)  # sleeps
            if i == STEPS * 3 // 4 and me == 0:
                pid = os.getpid()
                subprocess.Popen(["sh", "-c", f"kill -STOP {pid}; sleep 1.5; kill -CONT {pid}"])
                time.sleep(0.5)
            w = step(w, x)
        print("done", value(w))
        """.replace("STEPS", str(steps)),
        environment={"SPMDLINT_LATE_AFTER": "1"},
    )
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.output.count(f"done {steps}.0") == 2
    late = rf"late: process 1, for which process 0 has waited (\d+) s at call {steps // 2 + 1}.*"
    told = re.search(late, run.output, re.DOTALL)
    assert told, run.output
    assert int(told[1]) >= 1
    assert f"program.py:{run.marked('sleeps')}" in told[0]


def test_background_mode_tells_threads_apart_by_their_devices(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        import threading
        firsts, seconds = (Mesh(np.array(jax.devices()).reshape(2, 2)[:, n], ("d",)) for n in (0, 1))
        summed, greatest = jax.jit(jnp.sum), jax.jit(jnp.max)
        def work(function, mesh, first):
            held = jax.make_array_from_process_local_data(NamedSharding(mesh, P("d")), np.ones(1, np.float32))
            if not first:
                time.sleep(1)
            for _ in range(4):
                assert function(held) >= 1
        other = threading.Thread(target=work, args=(summed, firsts, me == 0))
        other.start()
        work(greatest, seconds, me == 1)
        other.join()
        assert value(summed(everywhere([1, 2]))) == 6
        """,
        devices=2,
        options=("--mode", "background"),
    )
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
