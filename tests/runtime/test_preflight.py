"""How processes were set up, compared before their calls are."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmdlint.runtime_checks.agreement.setup import difference, different_sources, meaningful_flags
from tests.runtime.jobs import rehearse

RECORD = {
    "devices": 4,
    "kind": "cpu",
    "jax": "0.10.2",
    "jaxlib": "0.10.2",
    "python": "3.11",
    "flags": [],
    "sources": {"train.py": "a", "model.py": "b"},
}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("devices", 2, ("the number of local devices", "4", "2")),
        ("kind", "gpu", ("the kind of device", "cpu", "gpu")),
        ("jax", "0.10.1", ("the version of jax", "0.10.2", "0.10.1")),
        ("flags", ["--xla_a=1"], ("XLA_FLAGS", "none", "--xla_a=1")),
    ],
)
def test_what_changes_programs_is_a_difference(field: str, value: object, words: tuple[str, str, str]) -> None:
    assert difference(RECORD, {**RECORD, field: value}) == words


def test_what_an_older_process_does_not_tell_is_none() -> None:
    assert difference(RECORD, {name: value for name, value in RECORD.items() if name != "kind"}) is None


def test_flags_that_say_where_to_write_do_not_matter() -> None:
    flags = "--xla_dump_to=/tmp/0 --xla_gpu_autotune_level=2 --xla_force_host_platform_device_count=4"
    assert meaningful_flags({"XLA_FLAGS": flags, "LIBTPU_INIT_ARGS": "--a=1"}) == [
        "--a=1",
        "--xla_gpu_autotune_level=2",
    ]


def test_source_files_that_differ_are_named() -> None:
    theirs = {**RECORD, "sources": {"train.py": "a", "model.py": "c", "eval.py": "d"}}
    assert different_sources(RECORD, theirs) == ["model.py"]
    assert difference(RECORD, theirs) is None


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
