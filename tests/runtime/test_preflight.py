"""How processes were set up, compared before their calls are."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmdlint.runtime_checks.agreement.setup import meaningful_flags, record, unlike
from tests.runtime.jobs import rehearse

FACTS = {
    "the number of local devices": "4",
    "the kind of device": "cpu",
    "the version of jax": "0.10.2",
    "the version of jaxlib": "0.10.2",
    "the version of Python": "3.11",
    "XLA_FLAGS": "none",
}


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("the number of local devices", "2"),
        ("the kind of device", "gpu"),
        ("the version of jax", "0.10.1"),
        ("XLA_FLAGS", "--xla_a=1"),
    ],
)
def test_what_changes_programs_is_a_difference(words: str, value: str) -> None:
    assert unlike(FACTS, {**FACTS, words: value}) == [words]
    assert unlike(FACTS, FACTS) == []


def test_all_that_changes_programs_is_told() -> None:
    told = record()
    assert set(told["facts"]) == set(FACTS)
    assert all(told["facts"].values())


def test_what_an_older_process_does_not_tell_is_none() -> None:
    assert unlike(FACTS, {name: value for name, value in FACTS.items() if name != "the kind of device"}) == []


def test_flags_that_say_where_to_write_do_not_matter() -> None:
    flags = "--xla_dump_to=/tmp/0 --xla_gpu_autotune_level=2 --xla_force_host_platform_device_count=4"
    assert meaningful_flags({"XLA_FLAGS": flags, "LIBTPU_INIT_ARGS": "--a=1"}) == [
        "--a=1",
        "--xla_gpu_autotune_level=2",
    ]


def test_source_files_that_differ_are_named() -> None:
    theirs = {"train.py": "a", "model.py": "c", "eval.py": "d"}
    assert unlike({"train.py": "a", "model.py": "b", "data.py": "e"}, theirs) == ["model.py"]


SHORT = """import os
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'false' if int(os.environ['SPMDLINT_PROCESS']) else 'true'}"
import jax
import numpy as np
from spmdlint import runtime_checks
jax.distributed.initialize()
whole = jax.sharding.NamedSharding(jax.make_mesh((2,), ("data",)), jax.sharding.PartitionSpec("data"))
x = jax.make_array_from_process_local_data(whole, np.ones(1))
"""
CALL = "print(float(jax.jit(lambda x: x.sum())(x)))\n"


@pytest.mark.parametrize(
    ("mode", "rest"),
    [("background", CALL), ("background", f"{CALL}runtime_checks.disable()\n"), ("lockstep", "")],
    ids=["background", "switched off", "no call"],
)
def test_flags_that_differ_are_told_however_short_the_program(mode: str, rest: str, tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text(SHORT + rest)
    run = rehearse(tmp_path, script, options=("--mode", mode))
    assert (run.status, run.verdict) == (3, ("diverged", "setup")), run.output
    assert "XLA_FLAGS differs" in run.report["message"], run.output
