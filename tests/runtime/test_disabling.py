"""``disable()`` on real processes: what was called before it is compared, and what comes after is not even recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import PRELUDE, alone, rehearse

DIVERGES = """
from spmdlint import runtime_checks
jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
runtime_checks.enable(mode="background", on_divergence="POLICY")
me, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))
rows = NamedSharding(mesh, P("data"))
x = jax.make_array_from_process_local_data(rows, np.ones(2, np.float32))
total = jax.jit(lambda v: jnp.sum(v))
double = jax.jit(lambda v: jnp.sum(v * 2))
for _ in range(3):
    total(x).block_until_ready(), double(x).block_until_ready()
first, second = (total, double) if me == 0 else (double, total)
first(x).block_until_ready(), second(x).block_until_ready()
runtime_checks.disable()
print("went on:", runtime_checks.status().reason)
"""


@pytest.mark.parametrize(("policy", "status"), [("report", 0), ("raise", 3), ("exit", 3)])
def test_a_divergence_just_before_is_found(policy: str, status: int, tmp_path: Path) -> None:
    ended = alone(tmp_path, DIVERGES.replace("POLICY", policy))
    assert [one[0] for one in ended] == [status, status], ended
    for _, output in ended:
        assert "call 7 of processes 0-1 differs" in output
        assert ("went on: disable() was called" in output) == (policy == "report")


def test_after_a_divergence_that_is_caught_no_process_waits_for_another(tmp_path: Path) -> None:
    """Who would be held at its second ``disable()`` would come to ``enable()`` after the other has ended."""
    body = """try:
    runtime_checks.disable()
except runtime_checks.DivergenceError:
    print("caught")
runtime_checks.disable()
runtime_checks.enable(mode="background")
runtime_checks.disable()
"""
    source = DIVERGES.replace("POLICY", "raise").replace("runtime_checks.disable()\n", body, 1)
    ended = alone(tmp_path, source)
    assert [one[0] for one in ended] == [0, 0], ended
    for _, output in ended:
        assert "caught" in output
        assert "went on: disable() was called" in output
        assert "off in all processes" not in output, ended


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_what_comes_after_is_not_compared(mode: str, tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from spmdlint import runtime_checks
        x = everywhere([1, 1])
        total = jax.jit(lambda v: jnp.sum(v))
        double = jax.jit(lambda v: jnp.sum(v * 2))
        for _ in range(3):
            total(x).block_until_ready(), double(x).block_until_ready()
        runtime_checks.disable()
        first, second = (total, double) if me == 0 else (double, total)
        first(x).block_until_ready(), second(x).block_until_ready()
        """,
        options=("--mode", mode, "--ledger", str(tmp_path / "ledger")),
    )
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert "processes 0-1 switched the checks off by disable() after 6 parallel calls" in run.report["message"]


def test_nothing_was_compared_if_it_comes_first(tmp_path: Path) -> None:
    program = tmp_path / "first.py"
    program.write_text(
        """
import jax
from spmdlint import runtime_checks
runtime_checks.disable()
jax.distributed.initialize()
"""
    )
    run = rehearse(tmp_path, program)
    assert (run.status, run.report["verdict"]) == (0, "unchecked"), run.output
    assert "switched the checks off by disable() before the first parallel call" in run.report["message"]


def test_a_process_that_is_not_waited_for_longer_goes_on(tmp_path: Path) -> None:
    ended = alone(
        tmp_path,
        """
        from jax.experimental.multihost_utils import process_allgather
        from spmdlint import runtime_checks
        from spmdlint.runtime_checks.ending import closing
        closing.SHORT_HOLD = 2.0
        jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
        runtime_checks.enable(mode="background")
        process_allgather(np.array([1]))
        if jax.process_index() == 1:
            time.sleep(5)
        runtime_checks.disable()
        process_allgather(np.array([1]))
        print("went on")
        """,
    )
    assert [one[0] for one in ended] == [0, 0], ended
    assert all("went on" in output and "diverged" not in output for _, output in ended), ended


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_enabled_again_it_sees_what_ran_before(mode: str, tmp_path: Path) -> None:
    """Also calls of a library that jits anew each time, so that no jitted function exists between two of its calls."""
    run = rehearse(
        tmp_path,
        f"""
        from jax.experimental.multihost_utils import process_allgather
        from spmdlint import runtime_checks
        total = jax.jit(lambda v: jnp.sum(v))
        def steps():
            for _ in range(3):
                process_allgather(np.array([1]))
                total(everywhere([1, 1])).block_until_ready()
        steps()
        os.environ.pop("SPMDLINT_RUNTIME_CHECKS")  # of --mode off, which overrules the program
        for _ in range(2):
            runtime_checks.enable("{mode}")
            steps()
            print("calls", sum(runtime_checks.status().calls.values()), flush=True)
            runtime_checks.disable()
            steps()
        """,
        options=("--mode", "off"),
    )
    assert run.status == 0, run.output
    assert run.output.count("calls 6\n") == 4, run.output


ONE_ONLY = """
from spmdlint import runtime_checks
from spmdlint.runtime_checks.ending import closing
closing.SHORT_HOLD = 3.0  # not as long as ever
JOIN
me, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(1, np.float32))
total = jax.jit(lambda v: jnp.sum(v))
total(x).block_until_ready()
if me == WHO: runtime_checks.disable()  # here
LATER
for _ in range(4):
    total(x).block_until_ready()
limit = time.monotonic() + 30
while runtime_checks.status().watching and time.monotonic() < limit:
    time.sleep(0.1)
print("went on:", runtime_checks.status().reason, flush=True)
"""
IN_A_JOB = """
jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
runtime_checks.enable("MODE")
"""


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_on_one_process_only_it_ends_the_checks_in_all(mode: str, who: int, tmp_path: Path) -> None:
    """All make the same calls, so nothing has diverged."""
    source = ONE_ONLY.replace("JOIN", IN_A_JOB.replace("MODE", mode)).replace("WHO", str(who)).replace("LATER", "")
    ended = alone(tmp_path, source)
    lines = (tmp_path / "alone.py").read_text().splitlines()
    here = next(n for n, line in enumerate(lines, 1) if line.endswith("# here"))
    assert [status for status, _ in ended] == [0, 0], ended
    told = f"the runtime checks are off in all processes: process {who} called disable() at alone.py:{here}"
    for number, (_, output) in enumerate(ended):
        assert "diverged" not in output
        if number != who:
            assert output.count("spmdlint: ") == 1, output
            assert f"went on: {told}" in output
        else:
            assert output.count("spmdlint: ") <= 1, output
            assert "went on: disable() was called" in output


def test_who_comes_long_after_one_has_left_steps_aside_too(tmp_path: Path) -> None:
    """A process that has called it does not wait for long."""
    source = ONE_ONLY.replace("JOIN", IN_A_JOB.replace("MODE", "background")).replace("WHO", "0")
    ended = alone(tmp_path, source.replace("LATER", "if me == 1: time.sleep(5)"))
    assert [status for status, _ in ended] == [0, 0], ended
    assert all("diverged" not in output for _, output in ended), ended
    assert (
        ended[1][1].count("spmdlint: the runtime checks are off in all processes: process 0 called disable() at") == 1
    ), ended


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_on_one_process_of_a_rehearsal_it_fails_nothing(mode: str, tmp_path: Path) -> None:
    program = tmp_path / "one.py"
    start = ONE_ONLY.replace("JOIN", "jax.distributed.initialize()").replace("WHO", "1").replace("LATER", "")
    program.write_text(PRELUDE.partition("jax.distributed")[0] + start)
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.report["verdict"]) == (0, "clean"), run.output
    assert f"process 1 switched the checks off by disable() at one.py:{run.marked('here')} after 1" in run.output
