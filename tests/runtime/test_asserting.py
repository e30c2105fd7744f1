"""What ``assert_equal`` refuses: before the cluster, and with the place of the leaf."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.jobs import rehearse

REFUSED = """
import pathlib
import jax
import jax.numpy as jnp
import numpy as np
from spmdlint import runtime_checks
runtime_checks.enable()
for value in (
    np.float32, jnp.bfloat16, np.dtype("float32"), jax.lax.Precision.HIGH, pathlib.PurePosixPath("a"), object(),
    np.array(["a"], dtype=object), np.zeros(1, [("a", object)]),
):
    try:
        runtime_checks.assert_equal({"model": {"kind": value, "steps": 3}}, "config")
    except TypeError as error:
        assert "cannot be compared between processes" in str(error), error
        assert "at ['model']['kind']," in str(error), error
    else:
        raise AssertionError(repr(value))
for value in (3, 10**30, 1 + 2j, True, "a", b"a", np.float32(1), np.zeros(2, jnp.bfloat16), jax.random.key(0),
    np.array(["ab"]), np.array(b"ab"), np.array([["ab"] * 20]),
):
    runtime_checks.assert_equal({"model": [value, None]}, "config")
try:
    runtime_checks.assert_equal(np.array([None]), "names")
except TypeError as error:
    assert str(error).startswith("An array of dtype object cannot be compared"), error
print("all refused", flush=True)
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_what_cannot_be_compared_is_refused_by_the_place_of_its_leaf(mode: str, tmp_path: Path) -> None:
    run = rehearse(tmp_path, REFUSED, options=("--mode", mode))
    assert (run.status, run.verdict[0]) == (0, "clean"), run.output
    assert run.output.count("all refused") == 2


def test_one_process_refuses_the_same(tmp_path: Path) -> None:
    program = tmp_path / "alone.py"
    program.write_text(REFUSED)
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=150)
    assert "all refused" in ended.stdout, ended.stderr


def test_one_process_takes_anything_if_the_checks_are_not_on(tmp_path: Path) -> None:
    program = tmp_path / "off.py"
    program.write_text("from spmdlint import runtime_checks\nruntime_checks.assert_equal(object(), 'anything')\n")
    assert subprocess.run([sys.executable, str(program)], check=False, timeout=150).returncode == 0


def test_arrays_of_strings_are_compared(tmp_path: Path) -> None:
    source = """
from spmdlint import runtime_checks
runtime_checks.assert_equal(np.array(["a", "b"]), "same")
runtime_checks.assert_equal({"names": np.array(["a", "b" if me else "c"])}, "names")
"""
    run = rehearse(tmp_path, source)
    assert run.verdict == ("diverged", "value"), run.output
    assert "at ['names']: process 0: <U1[2] ['a', 'c']; process 1: <U1[2] ['a', 'b']" in run.report["message"]


def test_a_value_without_leaves_is_shown_as_it_is(tmp_path: Path) -> None:
    source = """
from spmdlint import runtime_checks
for empty in (None, [], (), {}):
    runtime_checks.assert_equal(empty, "same")
runtime_checks.assert_equal(None if me else 0, "none")
"""
    run = rehearse(tmp_path, source)
    assert run.verdict == ("diverged", "value"), run.output
    assert run.report["index"] == 5
    assert "differs in none: process 0: 0; process 1: None" in run.report["message"]


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_a_callable_of_one_s_own_is_a_parallel_call(mode: str, tmp_path: Path) -> None:
    """Compared are its name and the shapes of its arrays, and not their values."""
    program = """
    from spmdlint import runtime_checks
    def sends(array, to):
        return array.sum() + to
    exchange = runtime_checks.track(sends, name="exchange")
    assert exchange(np.full(3, me), to=1 - me) == 3 * me + 1 - me
    exchange(np.ones(3 + me), to=0)  # here
    """
    run = rehearse(tmp_path, program, options=("--mode", mode))
    assert (run.status, run.verdict[0]) == (3, "diverged"), run.output
    assert run.report["index"] == 2
    assert {side["function"] for side in run.report["processes"].values()} == {"exchange"}
    assert run.line(0) == run.line(1) == run.marked("here"), run.output
