"""Interrupts of a job without the launcher: what an interrupted process has not done is no divergence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import PRELUDE, alone

START = """
import signal, threading
from spmdlint import runtime_checks

jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
runtime_checks.enable(mode="MODE")
me, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))
rows = NamedSharding(mesh, P("data"))
x = jax.make_array_from_process_local_data(rows, np.ones(1, np.float32))
total = jax.jit(lambda v: jnp.sum(v))
total(x).block_until_ready()
def interrupt_soon():
    threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
WAITING = """
if me == 1:
    interrupt_soon()
    time.sleep(1000)  # stands
total(x).block_until_ready()  # waits
"""


def _line(source: str, word: str) -> int:
    """The line of a marked place in the file that :func:`alone` writes."""
    before = PRELUDE.partition("jax.distributed")[0].count("\n")
    return before + next(n for n, text in enumerate(source.splitlines(), 1) if text.endswith(f"# {word}"))


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_interrupt_of_a_whole_job_is_no_divergence_though_a_process_is_blocked(mode: str, tmp_path: Path) -> None:
    source = START.replace("MODE", mode) + "if me == 0: interrupt_soon()\n" + WAITING
    ended = alone(tmp_path, source, cold=True)  # what an interrupt inside XLA does at Python's end is Python's own
    assert all(status in (130, -2) for status, _ in ended), ended
    for _, output in ended:
        assert "diverged" not in output
        assert "What to do" not in output
        assert "report-" not in output
        assert "Error in sys.excepthook" not in output
        assert "runtime_checks" not in output, "frames of ours"
        assert "Gloo all-reduce failed" not in output
    if mode == "background":
        waits, stands = _line(source, "waits"), _line(source, "stands")
        for _, output in ended:
            assert output.count("spmdlint: ") == 1, output
            assert f"process 0 was interrupted in <lambda> at alone.py:{waits}, 2 parallel calls begun" in output
            assert f"process 1 was interrupted at alone.py:{stands}, 1 parallel call begun" in output


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_an_interrupt_of_one_process_is_told_as_such(mode: str, tmp_path: Path) -> None:
    source = START.replace("MODE", mode) + WAITING
    ended = alone(tmp_path, source)
    assert all(status in (130, -2) for status, _ in ended), ended
    waits, stands = _line(source, "waits"), _line(source, "stands")
    for _, output in ended:
        assert f"process 1 was interrupted at alone.py:{stands}, 1 parallel call begun" in output
        assert f"process 0 is in <lambda> at alone.py:{waits}, 2 parallel calls begun" in output
        assert "diverged" not in output
        assert "What to do" not in output


@pytest.mark.parametrize("goes_on", [0, 1])
@pytest.mark.parametrize(("mode", "policy"), [("lockstep", "raise"), ("background", "exit"), ("background", "report")])
def test_who_acts_on_its_interrupt_is_not_ended_by_that_of_another(
    mode: str, policy: str, goes_on: int, tmp_path: Path
) -> None:
    """Also if process 0, without which JAX ends the others, is the one that ends first."""
    source = (
        START.replace('mode="MODE"', f'mode="{mode}", on_divergence="{policy}"')
        + f"""
interrupt_soon()
try:
    time.sleep(1000)
except KeyboardInterrupt:
    if me != {goes_on}:
        raise
    for _ in range(160):  # as if it wrote a checkpoint
        time.sleep(0.1)
    print("written", flush=True)
"""
    )
    ended = alone(tmp_path, source)
    assert "written" in ended[goes_on][1], ended
    assert all("diverged" not in output for _, output in ended), ended
    assert all("was interrupted at alone.py" in output for _, output in ended), ended


def test_an_interrupt_while_an_exception_is_noted_is_harmless(tmp_path: Path) -> None:
    source = (
        START.replace("MODE", "lockstep")
        + """
class Interrupting(Exception):
    def __str__(self):
        raise KeyboardInterrupt  # as if Ctrl-C came just then
raise Interrupting
"""
    )
    for _, output in alone(tmp_path, source):
        assert "Interrupting" in output
        assert "Error in sys.excepthook" not in output
        assert "runtime_checks" not in output, "frames of ours"


def test_a_second_interrupt_of_a_process_that_waits_for_the_others_ends_it_and_them(tmp_path: Path) -> None:
    again = "again = threading.Timer(5, os.kill, (os.getpid(), signal.SIGINT))\nagain.daemon = True\nagain.start()\n"
    source = START.replace("MODE", "background") + f"if me == 0: interrupt_soon()\n{again}" + WAITING
    ended = alone(tmp_path, source, cold=True)
    assert [status for status, _ in ended] == [130, 130], ended
    for _, output in ended:
        assert "was interrupted" in output
        assert "diverged" not in output
        assert "runtime_checks" not in output, "frames of ours"
