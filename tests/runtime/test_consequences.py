"""What follows a divergence in a job without the launcher, and what is said of how a process ended."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest

from spmdlint.runtime_checks import enable
from spmdlint.runtime_checks.calls.provenance import UNKNOWN, Unplaced
from spmdlint.runtime_checks.options import Mode, Policy
from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.reporting.report import ProcessReport, Report, as_text
from tests.runtime.fakes import Job, call
from tests.runtime.jobs import alone, rehearse

PROGRAM = """
from spmdlint import runtime_checks
number = int(sys.argv[1])
jax.distributed.initialize("localhost:{port}", 2, number)
runtime_checks.enable(MODE)
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
train = jax.jit(lambda v: jnp.sum(v))
evaluate = jax.jit(lambda v: jnp.mean(v))
for step in range(8):
    if number == 1 and step == 5:
        END
    train(x).block_until_ready()
    time.sleep(0.1)
print("through", flush=True)
"""


def run(tmp_path: Path, mode: str, end: str, **environment: str) -> list[tuple[int | None, str]]:
    program = PROGRAM.replace("MODE", repr(mode)).replace("END", end)
    return alone(tmp_path, program, environment=environment)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("break", "process 1 finished after 5 parallel calls"),
        ("sys.exit(4)", r"process 1 exited by sys.exit at alone.py:\d+ \(exit status 4\) after 5 parallel calls"),
        (
            "raise OSError('token=SECRET')",
            r"process 1 raised an exception at alone.py:\d+ \(OSError\) after 5 parallel",
        ),
    ],
)
def test_how_a_process_ended_is_told(end: str, words: str, tmp_path: Path) -> None:
    ended = run(tmp_path, "background", end, SPMDLINT_ON_DIVERGENCE="exit")
    assert [status for status, _ in ended] == [3, 3], ended
    assert re.search(words, ended[0][1]), ended
    assert "SECRET" not in ended[0][1], "what an exception says stays on the process that raised it"
    assert ("SECRET" in ended[1][1]) == ("SECRET" in end)
    assert ("Process 1: exited" in ended[0][1]) == ("exit" in end)


def test_an_exit_that_was_caught_is_none(tmp_path: Path) -> None:
    end = "\n        try:\n            sys.exit(4)\n        except SystemExit:\n            pass"
    ended = run(tmp_path, "background", end)
    assert [status for status, _ in ended] == [0, 0], ended
    assert all("through" in output and "diverged" not in output for _, output in ended)


def test_an_exception_that_is_swallowed_is_told_at_once(tmp_path: Path) -> None:
    end = "\n        train = evaluate"
    program = PROGRAM.replace("MODE", "'lockstep'").replace("END", end)
    program = program.replace("    train(x).block_until_ready()", "    try:\n        train(x)\n    except Exception:\n"
                              "        print('SWALLOWED', flush=True)")  # fmt: skip
    for status, output in alone(tmp_path, program):
        assert status == 3, output
        told, _, rest = output.partition("SWALLOWED")
        assert "diverged (sequence): call 6" in told
        assert "What to do" in told
        assert "diverged" not in rest, "once"


def test_an_exception_that_is_not_caught_is_told_once(tmp_path: Path) -> None:
    program = PROGRAM.replace("MODE", "'lockstep'").replace("END", "\n        train = evaluate")
    for status, output in alone(tmp_path, program):
        assert status == 3, output
        assert output.count("call 6 of processes 0-1 differs") == 1, output
        assert "diverged (sequence): call 6" in output
        assert "What to do" in output


def test_a_process_that_is_slow_to_end_is_not_aborted(tmp_path: Path) -> None:
    """The one with JAX's service would end between the last word of the other and its end."""
    slow = (
        "\n        import os\n        end = os._exit\n        os._exit = lambda status: (time.sleep(0.2), end(status))"
    )
    program = PROGRAM.replace("MODE", "'lockstep'").replace("END", f"{slow}\n        train = evaluate")
    ended = alone(tmp_path, program)
    assert [status for status, _ in ended] == [3, 3], ended


class Replicated:
    ndim = 1
    is_fully_replicated = True


def test_two_arrays_of_unknown_origin_at_one_place_are_noticed() -> None:
    from spmdlint.runtime_checks.calls.call import Call
    from spmdlint.runtime_checks.calls.fingerprint import Program

    a, b = Replicated(), Replicated()
    unplaced, program = Unplaced(), Program("norm", (0, 1))
    for _ in range(3):
        unplaced.look(Call(program, None, values=[a]))
    assert unplaced.names == set(), "always the same one"
    unplaced.look(Call(program, None, values=[b], tags="A" * len(UNKNOWN)))
    assert unplaced.names == set(), "its origin is known"
    unplaced.look(Call(program, None, values=[b]))
    assert unplaced.names == {"norm"}


@pytest.mark.parametrize("made", ["everywhere([n, 1])", "jax.jit(lambda v: v * 2)(everywhere([n, 1]))"])
def test_a_swap_of_arrays_with_parts_on_several_processes_is_not_called_clean_without_a_remark(
    made: str, tmp_path: Path
) -> None:
    """Neither of those that the program assembles, nor of those that a program without collectives makes of them."""
    program = f"""
    norm = jax.jit(lambda v: jnp.mean(v * v))
    held = {{name: {made} for n, name in enumerate("ab")}}
    for name in "ab" if me else "ba":
        value(norm(held[name]))
    """
    run = rehearse(tmp_path, program)
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
    told = run.report["message"]
    assert "Not compared: which of several arrays of one shape, not made by parallel calls or made of one array" in told
    assert "was passed to <lambda>" in told


def test_batches_are_not_told_as_arrays_that_may_be_swapped(tmp_path: Path) -> None:
    """Each takes the place of the one before: also the checks do not hold one longer than the program does."""
    program = """
    import weakref
    norm = jax.jit(lambda v: jnp.mean(v * v))
    before = []
    for n in range(5):
        batch = everywhere([n, 1])
        assert not any(each() is not None for each in before)
        value(norm(batch))
        before.append(weakref.ref(batch))
    """
    run = rehearse(tmp_path, program)
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
    assert run.report["message"] == "processes 0-1 made the same 5 parallel calls."


def test_late_lines_name_only_who_is_late(capfd: pytest.CaptureFixture[str]) -> None:
    import threading

    from spmdlint.runtime_checks.options import Options

    go = threading.Event()

    def body(session: object) -> None:
        if session.me == 1:  # type: ignore[attr-defined]
            go.wait(6)
        call(session, "step", (0, 1, 2, 3))  # type: ignore[arg-type]

    job = Job(4, Options(late_after=1.0))
    assert job.run(body) == {}
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("spmdlint: late")]
    assert told
    assert all("late: process 1," in line for line in told)


def test_what_comes_from_elsewhere_is_printed_plainly() -> None:
    assert plain("a\x1b[31mb\x9bc\u202ed\n\te\xe9") == "a\ufffd[31mb\ufffdc\ufffdd\n\te\xe9"
    assert plain("x" * 50, 10) == "x" * 7 + "..."
    report = Report(
        "diverged", "\x1b]0;title\x07", "sequence", processes={"0": ProcessReport("calling", function="\x1b")}
    )
    assert "\x1b" not in as_text(report)


def test_a_type_checker_knows_the_words() -> None:
    hints = typing.get_type_hints(enable)
    assert hints["mode"] == Mode | None
    assert hints["on_divergence"] == Policy | None


def test_a_process_that_compiles_is_told_with_what_it_compiles(tmp_path: Path) -> None:
    """On GPUs a compiler may wait for those of other processes, which the sentence then says."""
    program = """
    from jax._src import compiler
    from spmdlint import runtime_checks
    from spmdlint.runtime_checks.agreement import this_process

    this_process.COMPILING_AFTER = 0.5
    compiles = compiler.compile_or_get_cached
    def slowly(backend, computation, *args, **named):
        if me == 1 and "total" in str(computation.operation.attributes["sym_name"]):
            time.sleep(4)
        return compiles(backend, computation, *args, **named)
    x = everywhere([1, 2])
    compiler.compile_or_get_cached = slowly
    for name in ("SPMDLINT_RUN_FOLDER", "SPMDLINT_RUNTIME_CHECKS"):
        os.environ.pop(name, None)
    runtime_checks.enable("lockstep")
    def total(x):
        return jnp.sum(x)
    jax.block_until_ready(jax.jit(total)(x))
    runtime_checks.disable()
    """
    run = rehearse(tmp_path, program, options=("--mode", "off"), environment={"SPMDLINT_LATE_AFTER": "1.5"})
    assert run.status == 0, run.output
    late = next(line for line in run.output.splitlines() if "spmdlint: late: process 1, for which process 0" in line)
    told = r", after 0 calls, compiling total \(defined at program\.py:\d+\), module [0-9a-f]{8}$"
    assert re.search(told, late), late
