"""The type system over mesh axes: it agrees with JAX's own, and its table is in order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from spmdlint.analysis.meshtypes.states import State, either, together
from spmdlint.knowledge.typing import Typed, typing_table

HERE = Path(__file__).parent


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.long)])
def test_it_agrees_with_jax(count):
    pytest.importorskip("jax", minversion="0.8")
    # JAX 0.12 refuses a few more of them than 0.10 does, for reasons that the types are not about: 5 of 200.
    compare = [sys.executable, str(HERE / "compare.py"), str(count), "7000"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(compare, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = eval(done.stdout.splitlines()[-1])
    assert counts["agree"] > 0.8 * count


CHOSEN = """\
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


def chosen(x):
    return jax.lax.cond(x.sum() > 0, lambda: 1.0, lambda: 2.0)


run = jax.shard_map(chosen, mesh=mesh, in_specs=P("x"), out_specs=P())
"""
ON_JAX = """
def of_each(x):
    return chosen(x)[None]


print(run(jnp.array([1.0, -1.0])))
each = jax.shard_map(of_each, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
print(each(jnp.array([1.0, -1.0])).tolist())
"""


def test_a_branch_by_what_varies_varies_though_jax_says_that_it_does_not(project):
    """The one known disagreement: JAX's check does not count the predicate of a branch, and the devices differ."""
    pytest.importorskip("jax", minversion="0.8")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "-c", CHOSEN + ON_JAX], capture_output=True, text=True, timeout=200, env=environment
    )
    assert done.stdout.split("\n")[1] == "[1.0, 2.0]", done.stderr
    project.write({"chosen.py": CHOSEN})
    assert [code for _, _, code in project.check().found] == ["SPMD504"]


@pytest.mark.parametrize("first", get_args(State))
@pytest.mark.parametrize("second", get_args(State))
def test_the_order_of_two_does_not_matter(first, second):
    assert together([first, second]) == together([second, first])
    assert either([first, second], True) == either([second, first], True)


@pytest.mark.parametrize("state", get_args(State))
def test_one_value_or_the_same_is_that_value(state):
    assert either([state, state, "bottom"], True) == state


@pytest.mark.parametrize(
    ("states", "result"),
    [
        (["invariant", "invariant"], "invariant"),
        (["invariant", "replicated"], "replicated"),
        (["replicated", "partial"], "varying"),
        (["unknown", "varying"], "varying"),
        (["unknown", "invariant"], "unknown"),
        (["mixed", "invariant"], "mixed"),
        (["mixed", "varying"], "varying"),
    ],
)
def test_what_is_computed_from_two(states, result):
    assert together(states) == result


def test_a_branch_that_may_count_devices_is_not_told_apart():
    assert either(["invariant", "varying"], True) == "mixed"
    assert either(["invariant", "varying"], False) == "unknown"
    assert either(["unknown", "varying"], True) == "unknown"


def test_every_name_of_the_table_exists():
    """A name that is misspelled is typed by nothing, and nobody sees it."""
    jax = pytest.importorskip("jax")
    import builtins
    import importlib

    missing = []
    for name in typing_table().exact:
        module, _, attribute = name.rpartition(".")
        if module == "builtins":
            home: object = builtins
        else:
            home = jax if module == "jax" else importlib.import_module(module)
        if not hasattr(home, attribute):
            missing.append(name)
    assert missing == []
    assert set(typing_table().exact.values()) | {t for _, t in typing_table().below} == set(get_args(Typed))
