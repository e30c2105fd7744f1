"""Checks that see nothing notice it: no verdict reads "clean" for what was not seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spmdlint.runtime_checks.launch.result import Ended, Run
from tests.runtime.jobs import alone, rehearse

BLIND = {
    "background": """
from spmdlint.runtime_checks.intercept import fastpath
fastpath._noting = lambda journal, program, real, layout: ((lambda dtype: layout), lambda other: None)
""",
    "lockstep": """
from jax._src.interpreters import pxla
from spmdlint.runtime_checks import hook
# A tool that comes later puts something of its own around JAX's own.
real, after = pxla.MeshExecutableFastpathData, hook.Hook._member
def member(self, *args):
    pxla.MeshExecutableFastpathData = lambda *fields: real(*fields)
    return after(self, *args)
hook.Hook._member = member
""",
}
# One process does not come to its own test before the other has stood down.
BLIND["background, one process first"] = (
    BLIND["background"]
    + """
from spmdlint.runtime_checks.watching import health
look = health.Health.look
health.Health.look = lambda self: None if int(sys.argv[1]) and self._checks.active else look(self)
"""
)
PROGRAM = """
{blind}
jax.distributed.initialize({where})
{enable}
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
step = jax.jit(lambda v: jnp.sum(v))
for _ in range(20):
    total = step(x)
    time.sleep(0.05)
print("result", float(total), flush=True)
"""
ENABLE = """
from spmdlint import runtime_checks
runtime_checks.enable("{mode}")
"""
TESTED = """
while runtime_checks.status().health["self_test"] == "not run yet":
    time.sleep(0.05)
"""
AT_LAST = f"""
{TESTED}
print("status", runtime_checks.status().as_json(), flush=True)
"""
TOLD = "does not tell them of every call (of 4 calls of a test program, 1 were seen)"


@pytest.mark.parametrize("blind", BLIND)
def test_a_blind_layer_is_noticed(blind: str, tmp_path: Path) -> None:
    where, mode = '"localhost:{port}", 2, int(sys.argv[1])', blind.partition(",")[0]
    program = PROGRAM.format(blind=BLIND[blind], where=where, enable=ENABLE.format(mode=mode)) + AT_LAST
    ended = alone(tmp_path, program)
    assert [status for status, _ in ended] == [0, 0], ended
    tests = []
    for _, output in ended:
        assert "result 4.0" in output
        assert output.count("spmdlint: ") == 1
        assert TOLD in output
        told = json.loads(output.partition("\nstatus ")[2].partition("\n")[0])
        assert not told["watching"]
        tests.append(told["health"]["self_test"])
    seen = "of 4 calls of a test program, 1 were seen"
    # The first to find out stands down for both.
    assert seen in tests
    assert set(tests) <= {seen, "not run: the checks are off"}


PUT_BACK = """
from jax._src.interpreters import pxla
real = pxla.ExecuteReplicated.__call__
jax.distributed.initialize("localhost:{{port}}", 2, int(sys.argv[1]))
from spmdlint import runtime_checks
runtime_checks.enable("{mode}")
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
def summed(v):
    return jnp.sum(v)
for number in range(6):
    if number == 2 and jax.process_index() == 1:
        pxla.ExecuteReplicated.__call__ = real
    total = jax.jit(lambda v: summed(v) + number)(x)
    total.block_until_ready()
print("result", float(total), flush=True)
"""


@pytest.mark.parametrize("mode", ["background", "lockstep"])
def test_a_layer_that_one_process_loses_is_noticed_before_calls_are_compared(mode: str, tmp_path: Path) -> None:
    ended = alone(tmp_path, PUT_BACK.format(mode=mode))
    assert [status for status, _ in ended] == [0, 0], ended
    for _, output in ended:
        assert "result 9.0" in output
        assert "diverged" not in output
        assert "off from now on" in output or "continues without checks" in output
    assert "another tool has put back what they hook into (ExecuteReplicated.__call__)" in ended[1][1]


def test_a_rehearsal_that_saw_nothing_is_not_clean(tmp_path: Path) -> None:
    script = tmp_path / "blind.py"
    head = "import time\nimport jax, jax.numpy as jnp, numpy as np\nfrom jax.sharding import Mesh, NamedSharding\n"
    head += "from jax.sharding import PartitionSpec as P\n"
    # Neither may call before the test: it would wait for the other one, 30 s, if that is stopped before its own call.
    before = f"from spmdlint import runtime_checks\njax.devices()\n{TESTED}"
    script.write_text(head + PROGRAM.format(blind=BLIND["background"], where="", enable=before))
    run = rehearse(tmp_path, script, options=("--mode", "background"))
    assert run.status == 1, run.output
    assert run.report["verdict"] == "failed"
    assert TOLD in run.output


def test_sound_checks_pass_and_count_only_what_the_program_calls(tmp_path: Path) -> None:
    program = """
    from spmdlint import runtime_checks
    for _ in range(100):
        if runtime_checks.status().health["self_test"] != "not run yet":
            break
        time.sleep(0.05)
    step = jax.jit(lambda v: jnp.sum(v))
    for _ in range(5):
        step(everywhere([1]))
    status = runtime_checks.status()
    assert status.health["self_test"] == "passed", status
    assert status.calls == {"0,1": 5}, status
    assert status.quiet == 0
    """
    for mode in ("background", "lockstep"):
        run = rehearse(tmp_path, program, options=("--mode", mode))
        assert (run.status, run.report["verdict"]) == (0, "clean"), run.output


def test_a_clean_run_says_which_layers_were_off() -> None:
    ended = {0: Ended(0, 1.0), 1: Ended(0, 1.0)}

    def concluded(off: list[str]) -> tuple[str, str]:
        states = {number: {"state": "finished", "counts": {"g": 3}, "off": off} for number in ended}
        report, _ = Run("lockstep", ended, states, joined=[0, 1]).conclude(None)
        return report.verdict, report.message

    assert concluded([]) == ("clean", "processes 0-1 made the same 3 parallel calls.")
    assert concluded(["every-call"])[1].endswith("every-call was off (the guide says what each layer sees).")
    assert concluded(["dispatch"])[0] == "unchecked"


def test_a_signal_asks_for_the_health_of_the_checks(tmp_path: Path) -> None:
    program = """
    import signal
    from spmdlint import runtime_checks
    jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
    runtime_checks.enable("background")
    jax.devices()
    while not runtime_checks.status().joined:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGUSR2)
    time.sleep(2)
    """
    for number, (status, output) in enumerate(alone(tmp_path, program)):
        assert status == 0, output
        (line,) = [json.loads(line) for line in output.splitlines() if line.startswith('{"spmdlint": "health"')]
        assert (line["process"], line["self_test"], line["layers_off"], line["watching"]) == (
            number,
            "passed",
            [],
            True,
        )
