"""The signal that asks a process for a report: whatever the checks do just then, it ends no process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.jobs import alone

BEGIN = """
import signal, threading
def ask(pause=3.0):
    os.kill(os.getpid(), signal.SIGUSR2)
    time.sleep(pause)  # asks
from spmdlint import runtime_checks
BEFORE
jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
runtime_checks.enable("MODE")
me = jax.process_index()
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
total = jax.jit(lambda v: jnp.sum(v))
for _ in range(3):
    total(x).block_until_ready()
while not runtime_checks.status().joined:
    time.sleep(0.05)
"""


def run(folder: Path, mode: str, rest: str, before: str = "", **environment: str) -> list[str]:
    """The lines of the checks on each process of a job that ends as if nobody had asked."""
    ends = alone(folder, BEGIN.replace("MODE", mode).replace("BEFORE", before) + rest, environment=environment)
    assert [status for status, _ in ends] == [0, 0], ends
    return [output for _, output in ends]


def test_in_lockstep_it_says_where_this_process_is(tmp_path: Path) -> None:
    for me, output in enumerate(run(tmp_path, "lockstep", "ask()\n")):
        (line,) = [line for line in output.splitlines() if line.startswith("spmdlint:")]
        script = (tmp_path / "alone.py").read_text().splitlines()
        at = next(n for n, text in enumerate(script, 1) if text.endswith("# asks"))
        assert f"Process {me} is at {tmp_path}/alone.py:{at}, 3 parallel calls begun." in line
        assert "Background mode tells of all processes." in line


def test_in_lockstep_it_answers_while_the_process_waits_in_a_call(tmp_path: Path) -> None:
    rest = """
if me == 0:
    threading.Timer(1.0, ask).start()
else:
    time.sleep(6)
total(x).block_until_ready()
"""
    first, second = run(tmp_path, "lockstep", rest)
    assert "Process 0 is at" in first
    assert "4 parallel calls begun" in first
    assert "Process" not in second


def test_a_deep_stack_is_one_request() -> None:
    """The signal's handler writes the stack of the process piece by piece, while whoever answers is reading."""
    program = """
import os, subprocess, threading, time
from spmdlint.runtime_checks.watching.demand import Demand

def deep(levels):
    if levels:
        deep(levels - 1)
    else:
        # As in XLA: the process is asked while its main thread does not hold the interpreter.
        subprocess.Popen(["sh", "-c", f"sleep 0.1; kill -USR2 {os.getpid()}"])
        time.sleep(0.5)

demand, answers, over = Demand("USR2"), 0, False

def answer():
    global answers
    while not over:
        answers += demand.asked()

thread = threading.Thread(target=answer)
thread.start()
for _ in range(5):
    deep(90)
over = True
thread.join()
print("answers", answers)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "answers 5\n", ended


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_when_the_checks_are_off_it_does_nothing(mode: str, tmp_path: Path) -> None:
    for output in run(tmp_path, mode, "runtime_checks.disable()\nask(0.1)\njax.distributed.shutdown()\nask(0.1)\n"):
        assert "spmdlint" not in output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_before_and_after_the_job_it_ends_no_process(mode: str, tmp_path: Path) -> None:
    before = f'runtime_checks.enable("{mode}")\nask(0.1)\n'
    for output in run(tmp_path, mode, "jax.distributed.shutdown()\nask(0.1)\n", before):
        assert "Process" in output or "process" in output


def test_after_disable_the_checks_can_be_asked_again(tmp_path: Path) -> None:
    rest = """
runtime_checks.disable()
runtime_checks.enable("background")
total(x).block_until_ready()
while not runtime_checks.status().joined:
    time.sleep(0.05)
ask()
total(x).block_until_ready()
"""
    for output in run(tmp_path, "lockstep", rest):
        assert '{"spmdlint": "health"' in output


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_handler_of_the_program_is_left_alone(mode: str, early: bool, tmp_path: Path) -> None:
    own = 'signal.signal(signal.SIGUSR2, lambda *_: print("my handler", flush=True))\n'
    rest = f"{'' if early else own}ask(0.1)\nruntime_checks.disable()\nask(0.1)\njax.distributed.shutdown()\nask(0.1)\n"
    for output in run(tmp_path, mode, rest, own if early else ""):
        assert output.count("my handler") == 3, output
        assert "Process" not in output


def test_after_a_verdict_it_repeats_the_verdict(tmp_path: Path) -> None:
    """The processes stand at one call then, by its number; but not in one that they share."""
    rest = """
runtime_checks.assert_equal(me, "rank")
while runtime_checks.status().watching:
    time.sleep(0.05)
print("ASKED", flush=True)
ask()
"""
    for me, output in enumerate(run(tmp_path, "background", rest)):
        told = output.partition("ASKED")[2]
        (line,) = [line for line in told.splitlines() if line.startswith("spmdlint: ")]
        assert line.startswith("spmdlint: diverged (value): call 4 of processes 0-1"), told
        assert f"Process {me} is at" in line
        assert "all processes are at" not in told
