"""Who decides about the checks: the program by ``enable``, or the environment, and so whoever operates the job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spmdlint import runtime_checks
from spmdlint.runtime_checks.options import choose
from tests.runtime.jobs import alone, rehearse

PROGRAM = """
jax.distributed.initialize("localhost:{port}", 2, int(sys.argv[1]))
from spmdlint import runtime_checks
ENABLE
mesh = Mesh(np.array(jax.devices()), ("data",))
x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.ones(2, np.float32))
total = jax.jit(lambda v: jnp.sum(v))
for _ in range(3):
    total(x).block_until_ready()
status = runtime_checks.status()
print("is", status.mode, status.watching, status.reason)
"""
RUNNER = ("-m", "spmdlint.runtime_checks")


def told(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("spmdlint:")]


@pytest.mark.parametrize(
    ("enable", "words"),
    [
        ('mode="background"', "mode is lockstep, not background (SPMDLINT_RUNTIME_CHECKS)"),
        ('mode="off"', "mode is lockstep, not off (SPMDLINT_RUNTIME_CHECKS)"),
        (
            'mode="background", on_divergence="exit"',
            (
                "mode is lockstep, not background (SPMDLINT_RUNTIME_CHECKS); on_divergence is raise, not exit "
                "(SPMDLINT_ON_DIVERGENCE)"
            ),
        ),
        ('mode="lockstep"', None),
        ("", None),
    ],
)
def test_the_environment_of_the_runner_overrules_the_program(enable: str, words: str | None, tmp_path: Path) -> None:
    call = f"runtime_checks.enable({enable})\nruntime_checks.enable({enable})"
    ends = alone(tmp_path, PROGRAM.replace("ENABLE", call), RUNNER, environment={"SPMDLINT_RUNTIME_CHECKS": "lockstep"})
    for status, output in ends:
        assert status == 0, output
        assert "is lockstep True None" in output
        if words is None:
            assert told(output) == []
        else:
            (line,) = told(output)
            assert line == (
                "spmdlint: enable() does not change what the environment says under python -m "
                f"spmdlint.runtime_checks: {words}."
            )


def test_it_does_so_before_jax_is_imported(tmp_path: Path) -> None:
    script = tmp_path / "early.py"
    script.write_text(
        'from spmdlint import runtime_checks\nruntime_checks.enable("background")\n'
        "import jax\nprint(runtime_checks.status().mode)\n"
    )
    words = [sys.executable, *RUNNER, str(script)]
    given = {**os.environ, "SPMDLINT_RUNTIME_CHECKS": "lockstep"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, env=given, check=False)
    assert (done.returncode, done.stdout) == (0, "lockstep\n"), done.stderr
    assert "mode is lockstep, not background (SPMDLINT_RUNTIME_CHECKS)" in done.stderr


def test_it_does_so_again_after_disable(tmp_path: Path) -> None:
    call = 'runtime_checks.disable()\nruntime_checks.enable("lockstep")'
    ends = alone(
        tmp_path, PROGRAM.replace("ENABLE", call), RUNNER, environment={"SPMDLINT_RUNTIME_CHECKS": "background"}
    )
    for status, output in ends:
        assert status == 0, output
        assert "is background True" in output, output


@pytest.mark.parametrize("runner", [(), RUNNER])
def test_off_in_the_environment_overrules_the_program(runner: tuple[str, ...], tmp_path: Path) -> None:
    call = 'runtime_checks.enable("background")\nruntime_checks.enable("lockstep")'
    ends = alone(tmp_path, PROGRAM.replace("ENABLE", call), runner, environment={"SPMDLINT_RUNTIME_CHECKS": "off"})
    for status, output in ends:
        assert status == 0, output
        assert "is off False SPMDLINT_RUNTIME_CHECKS is off" in output
        assert told(output) == [
            "spmdlint: the runtime checks are off, because SPMDLINT_RUNTIME_CHECKS is off: enable() has no effect."
        ]


def test_it_is_off_in_any_case_and_never_what_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets it believes that it counts."""
    monkeypatch.setenv("SPMDLINT_RUNTIME_CHECKS", "OFF")
    runtime_checks.enable("lockstep")
    assert runtime_checks.status().reason == "SPMDLINT_RUNTIME_CHECKS is off"
    assert choose(None, None, {"SPMDLINT_RUNTIME_CHECKS": "Background"}).mode == "background"
    assert choose("lockstep", None, {"SPMDLINT_RUNTIME_CHECKS": "BACKGROUND"}).mode == "lockstep"
    for value in ("0", "none", "Bogus"):
        monkeypatch.setenv("SPMDLINT_RUNTIME_CHECKS", value)
        for mode in ("lockstep", "background", "off", None):
            with pytest.raises(ValueError, match=f"^SPMDLINT_RUNTIME_CHECKS is '{value}': use one of lockstep, "):
                runtime_checks.enable(mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["most", "all:", "all:0", "sample:x", ":5"])
def test_what_is_compared_of_values_is_one_of_few_words(value: str) -> None:
    assert choose(None, None, {"SPMDLINT_VALUES": "all:100"}).values_every == 100
    with pytest.raises(ValueError, match=f"^SPMDLINT_VALUES is '{value}': use one of sample, all, small, off, or "):
        choose(None, None, {"SPMDLINT_VALUES": value})


def test_off_is_not_told_to_who_asks_for_nothing_else(tmp_path: Path) -> None:
    program = PROGRAM.replace("ENABLE", "runtime_checks.enable()")
    ends = alone(tmp_path, program, environment={"SPMDLINT_RUNTIME_CHECKS": "off"})
    assert all(status == 0 and "is off False" in output and not told(output) for status, output in ends), ends


def test_without_the_runner_the_program_decides(tmp_path: Path) -> None:
    call = 'runtime_checks.enable("background")\ntry:\n    runtime_checks.enable("lockstep")\n'
    call += "except RuntimeError as error:\n    print('refused:', error)"
    ends = alone(tmp_path, PROGRAM.replace("ENABLE", call), environment={"SPMDLINT_RUNTIME_CHECKS": "lockstep"})
    for status, output in ends:
        assert status == 0, output
        assert "refused: The runtime checks are already on with different options" in output
        assert "is background True" in output
        assert told(output) == []


def test_a_rehearsal_without_checks_has_none(tmp_path: Path) -> None:
    program = """
    from spmdlint import runtime_checks
    runtime_checks.enable("background")
    total = jax.jit(lambda v: jnp.sum(v))
    total(everywhere([1])).block_until_ready()
    print("is", runtime_checks.status().watching, flush=True)
    """
    run = rehearse(tmp_path, program, options=("--mode", "off"))
    assert (run.status, run.report["verdict"]) == (0, "unchecked"), run.output
    assert run.output.count("is False") == 2
    assert run.remarks == [f"spmdlint: unchecked: {run.report['message']}"]
