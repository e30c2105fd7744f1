"""Background mode on real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import DIVERGENT, PROMPT, Run, alone, rehearse

BACKGROUND = ("--mode", "background")


@pytest.mark.parametrize(
    ("name", "kind"), [("swapped_calls", "sequence"), ("one_batch_less", "missing"), ("local_padding", "arguments")]
)
def test_divergent_programs_of_the_fixtures(name: str, kind: str, tmp_path: Path) -> None:
    run = rehearse(tmp_path, DIVERGENT / f"{name}.py", options=BACKGROUND)
    assert (run.status, run.verdict) == (3, ("diverged", kind)), run.output


def placed(run: Run, first: str, second: str) -> bool:
    return (run.line(0), run.line(1)) == (run.marked(first), run.marked(second))


def test_calls_on_the_fast_path_are_counted(tmp_path: Path) -> None:
    """The 300 equal calls run inside C++; the one that is left out shows at the first call that differs."""
    run = rehearse(
        tmp_path,
        """
        step = jax.jit(lambda w, x: w + jnp.mean(x))
        final = jax.jit(lambda w, x: w - jnp.max(x))
        w, x = jnp.zeros(()), everywhere([1, 1])
        for i in range(300):
            if i == 200 and me == 1:
                continue
            w = step(w, x)  # steps
        final(w, x)  # final
        """,
        options=BACKGROUND,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "sequence")), run.output
    assert run.report["index"] == 300
    assert placed(run, "steps", "final")


def test_equal_work_is_clean_and_every_call_is_seen(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from spmdlint import runtime_checks
        step = jax.jit(lambda w, x: w + jnp.mean(x))
        ahead = step.lower(jnp.zeros(()), everywhere([1, 1])).compile()
        w = jnp.zeros(())
        for i in range(50):
            w = step(w, everywhere([1, 1]))
            w = step(np.float32(1), everywhere([1, 1]))
            # Without this, JAX 0.10 itself hangs on CPU: one process runs ahead of its own devices' collectives.
            w.block_until_ready()
            if me == 0:
                float(w * 100)
        jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(np.ones((2, 3), np.float32))
        status = runtime_checks.status()
        print("calls", status.calls, sorted(set(status.layers.values())))
        """,
        devices=2,
        options=BACKGROUND,
    )
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert run.output.count("calls {'0,1': 101} ['on']") == 2


def test_a_process_that_leaves_without_a_word_is_missing(tmp_path: Path) -> None:
    """Its exit status is 0, so that nothing but its record tells how far it came."""
    run = rehearse(
        tmp_path,
        """
        step = jax.jit(lambda w, x: w + jnp.mean(x))
        w = jnp.zeros(())
        for i in range(9):
            w = step(w, everywhere([1, 1]))  # steps
            w.block_until_ready()
            if i == 4 and me == 1:
                os._exit(0)
        """,
        options=BACKGROUND,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert run.report["index"] == 6
    assert placed(run, "steps", "steps")
    assert run.seconds < PROMPT, "nobody waits for JAX's own shutdown"


def test_who_has_finished_is_placed_at_its_last_call(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from spmdlint.runtime_checks import assert_equal

        step = jax.jit(lambda w, x: w + jnp.mean(x))
        more = jax.jit(lambda w, x: w + jnp.max(x))
        w = jnp.zeros(())
        for i in range(3):
            w = step(w, everywhere([1, 1]))
        w.block_until_ready()
        assert_equal(3, "steps")  # last
        if me == 0:
            more(w, everywhere([1, 1])).block_until_ready()  # more
        """,
        options=BACKGROUND,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert (run.line(0), run.line(1)) == (run.marked("more"), run.marked("last")), run.output
    assert "finished, after 4 calls" in run.output


@pytest.mark.parametrize("left", [0, 2])
def test_a_process_that_ends_before_its_first_call_is_missing(left: int, tmp_path: Path) -> None:
    """The others wait for it while the communicator is made; who compares may be the one that is missing."""
    run = rehearse(
        tmp_path,
        f"""
        if me == {left}:
            raise KeyError("no file for this process")  # left
        total = jax.jit(lambda x: jnp.sum(x))
        total(everywhere([1])).block_until_ready()  # total
        """,
        processes=3,
        options=BACKGROUND,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "missing")), run.output
    assert [run.line(p) for p in range(3)] == [run.marked("left" if p == left else "total") for p in range(3)]
    assert "Gloo context initialization failed" not in run.output, "the checks were first"


def test_who_is_about_to_make_a_call_that_differs_is_placed_too(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        step = jax.jit(lambda x: jnp.sum(x) * (1 + (me == 0)))
        x = everywhere([1])
        if me == 2:
            time.sleep(0.4)
        step(x).block_until_ready()  # step
        """,
        processes=3,
        options=BACKGROUND,
    )
    assert (run.status, run.verdict) == (3, ("diverged", "program")), run.output
    assert [run.line(process) for process in range(3)] == [run.marked("step")] * 3


LOOP = """
from functools import partial
try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map
from spmdlint import runtime_checks

jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
runtime_checks.enable("background", on_divergence=os.environ["POLICY"])
me, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(4, np.float32))

def watched(more):
    # The collective is never made, so that a divergence does not hang.
    @jax.jit
    @partial(shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    def rarely(v):
        return jax.lax.cond(v[0] > 1e9, lambda w: jax.lax.psum(w, "data") + more * w, lambda w: w + more * w, v)
    return rarely

first, second = watched(0), watched(1)
first(x), second(x)
number, limit = 0, time.time() + 60
try:
    while (number < 520 or runtime_checks.status().watching) and time.time() < limit:
        first(x)
        if number == 500 and me == 1:
            second(x)
        number += 1
        time.sleep(0.002)
    print("went on", number < 520, runtime_checks.status().watching, flush=True)
except runtime_checks.DivergenceError as error:
    print("caught", error.report.kind, error.report.index, number, flush=True)
if me == 0:
    time.sleep(1)  # its service has to outlive the other
os._exit(0)
"""


@pytest.mark.parametrize("policy", ["raise", "report"])
def test_without_the_launcher(policy: str, tmp_path: Path) -> None:
    """In the real job: the error comes up in calls of the fast path, or the job goes on and one process has told."""
    ended = alone(tmp_path, LOOP, environment={"POLICY": policy})
    outputs = "".join(output for _, output in ended)
    assert [status for status, _ in ended] == [0, 0], outputs
    if policy == "raise":
        caught = [output.split("caught program 504 ")[1].split()[0] for _, output in ended]
        assert all(int(number) > 500 for number in caught), outputs
        assert "went on" not in outputs
    else:
        assert outputs.count("went on False False") == 2, outputs
        assert outputs.count("What to do") == outputs.count('{"spmdlint": "diverged"') == 1


def test_processes_that_ask_each_other_at_once_both_answer(tmp_path: Path) -> None:
    outputs = alone(
        tmp_path,
        """
        import signal, threading
        from jax._src import distributed
        from jax.experimental.multihost_utils import process_allgather
        from spmdlint.runtime_checks.api import _Installed
        from spmdlint.runtime_checks.background import leading
        jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
        me = jax.process_index()
        process_allgather(np.array([1]))
        reported, write = threading.Event(), leading.write_error
        leading.write_error = lambda words: (write(words), reported.set())
        published = _Installed.hook.session.background._published
        begin = distributed.global_state.client.wait_at_barrier

        def ask():
            while not any(count == 2 - me for count, *_ in published.values()):
                time.sleep(0.05)
            for number in range(3):
                begin(f"round {number}", 60_000)
                os.kill(os.getpid(), signal.SIGUSR2)
                reported.wait(60)
                reported.clear()
            begin("the end", 60_000)
            time.sleep(0 if me else 2)  # the store is in process 0
            os._exit(0)

        threading.Thread(target=ask).start()
        if me == 1:
            time.sleep(100)  # sleeps
        process_allgather(np.array([1]))
        """,
        runner=("-m", "spmdlint.runtime_checks"),
        environment={"SPMDLINT_RUNTIME_CHECKS": "background"},
    )
    for _, output in outputs:
        assert output.count("process 1 is 1 call behind, at ") == 3, output
        assert "does not answer" not in output
