"""An array of known origin on one process and of unknown origin on another: legal, so silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import rehearse

LEGAL = """
from functools import partial
total = jax.jit(lambda v: jnp.sum(v))
grow = jax.jit(lambda v: v + jnp.mean(v))
early = everywhere([3, 4])

w = grow(early)
if me == 0:  # moved to the host for lack of memory, and back
    w = everywhere(np.asarray(w.addressable_data(0)))
assert value(total(w)) == 14

w = grow(early)
if me == 0:  # put where it is: nothing is dispatched
    w = jax.device_put(w, w.sharding)
assert value(total(w)) == 14

batch = jax.jit(lambda v: v * 2)(early) if me == 1 else everywhere([6 + 2 * me])  # a batch from a cache
assert value(total(batch)) == 14

given_up = partial(jax.jit, donate_argnums=0)(lambda v: v + jnp.mean(v))
for _ in range(3):
    w = given_up(w)
value(total(w))
"""


def test_legal_programs_in_which_only_one_side_knows_an_origin_are_silent(tmp_path: Path) -> None:
    run = rehearse(tmp_path, LEGAL.replace("[3, 4]", "[3 + me]"), environment={"PYTHONWARNINGS": "error"})
    assert (run.status, run.report.get("verdict")) == (0, "clean"), run.output
    assert run.remarks == [f"spmdlint: clean: {run.report['message']}"], run.output


def test_arrays_made_before_the_checks_are_on_agree_with_anything(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        from spmdlint import runtime_checks
        total, grow = jax.jit(lambda v: jnp.sum(v)), jax.jit(lambda v: v + jnp.mean(v))
        old = grow(everywhere([1 + me]))
        os.environ.pop("SPMDLINT_RUNTIME_CHECKS")  # of --mode off, which overrules the program
        runtime_checks.enable(mode="lockstep", on_divergence="exit")
        new = grow(old)
        for one in (old, new, old):
            value(total(one))
        """,
        options=("--mode", "off"),
    )
    assert run.status == 0, run.output
    assert run.remarks == [f"spmdlint: unchecked: {run.report['message']}"], run.output


def test_arrays_that_only_their_order_tells_apart(tmp_path: Path) -> None:
    """One shape, one function: each process says under which name it passes which output there."""
    run = rehearse(
        tmp_path,
        """
        from collections import OrderedDict
        grow = jax.jit(lambda v: v + jnp.mean(v))
        a, b = grow(everywhere([1])), grow(everywhere([2]))
        named = {"a": a, "b": b} if me == 0 else {"b": b, "a": a}
        total = jax.jit(lambda p: sum((i + 1) * jnp.sum(v) for i, v in enumerate(p.values())))
        total(OrderedDict(named))
        """,
    )
    assert run.verdict == ("diverged", "arguments"), run.output
    assert "process 0: p['a'], output 0 of <lambda> (call 1, program.py:" in run.report["message"], run.output
    assert "process 1: p['b'], output 0 of <lambda> (call 2, program.py:" in run.report["message"], run.output


def test_outputs_of_one_line_are_told_apart_by_their_calls(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        grow = jax.jit(lambda v: v + jnp.mean(v))
        first, second = (grow(everywhere([number])) for number in (1, 2))
        apart = jax.jit(lambda x, y: jnp.sum(x - y))
        apart(first, second) if me == 0 else apart(second, first)
        """,
    )
    assert run.verdict == ("diverged", "arguments"), run.output
    assert "where y comes from: process 0: output 0 of <lambda> (call 2, program.py:" in run.report["message"], (
        run.output
    )
    assert "; process 1: output 0 of <lambda> (call 1, program.py:" in run.report["message"], run.output


def test_what_differs_in_the_program_that_made_an_array_is_told_at_its_use(tmp_path: Path) -> None:
    """A program without arguments is made with a constant of each process's own."""
    run = rehearse(
        tmp_path,
        """
        whole = NamedSharding(mesh, P())
        w = jax.jit(lambda: jnp.ones((3,)) * (1 + me), out_shardings=whole)()
        loss = jax.jit(lambda w, x: (w * x).sum())
        loss(w, everywhere(np.ones((4, 3))))
        """,
    )
    assert run.verdict == ("diverged", "arguments"), run.output
    assert "where w comes from: output 0 of <lambda> on both, but of another program" in run.report["message"]
    assert "The call that made it differs between the processes" in run.output


def test_copies_on_one_process_stand_for_what_they_are_made_of(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        grow = jax.jit(lambda v: v + jnp.mean(v))
        w = grow(everywhere([1 + me]))
        for change in (jnp.copy, lambda v: v.copy(), jnp.nan_to_num, lambda v: jnp.where(jnp.isnan(v), 0, v)):
            w = grow(change(w) if me == 0 else w)
        tree = {"a": w, "b": grow(w)}
        if me == 1:
            tree = jax.jit(lambda t: jax.tree.map(jnp.copy, t))(tree)
        total = jax.jit(lambda t: jnp.sum(t["a"]) - jnp.sum(t["b"]))
        value(total(tree))
        """,
    )
    assert (run.status, run.report.get("verdict")) == (0, "clean"), run.output


def test_parts_that_one_call_makes_of_one_array_are_told_apart(tmp_path: Path) -> None:
    run = rehearse(
        tmp_path,
        """
        grow = jax.jit(lambda v: v + jnp.mean(v))
        low, high = jax.jit(lambda v: (v - 1, v + 1))(grow(everywhere([1])))
        grow(low if me else high)
        """,
    )
    assert run.verdict == ("diverged", "arguments"), run.output


SELECTING = """
from spmdlint import runtime_checks
centred = jax.jit(lambda v: v - v.mean())(everywhere([4 * me + 1, 4 * me + 3]))
scale = jax.jit(lambda v, by: v * by)
total = jax.jit(lambda v: jnp.sum(v))
parts = [value(total(scale(centred, NUMBER))) for root in range(count)]
assert parts == [-4, 4], parts
"""


@pytest.mark.parametrize("mode", ["lockstep", "background"])
def test_numbers_that_differ_between_processes_select_a_part_each(mode: str, tmp_path: Path) -> None:
    """Results of one array that differ in a number of the host are told apart, unless it may differ on purpose."""
    number = "float(me == root)"
    run = rehearse(tmp_path, SELECTING.replace("NUMBER", f"runtime_checks.local({number})"), options=("--mode", mode))
    assert (run.status, run.verdict) == (0, ("clean", None)), run.output
    run = rehearse(tmp_path, SELECTING.replace("NUMBER", number), options=("--mode", mode))
    assert run.verdict == ("diverged", "value"), run.output
