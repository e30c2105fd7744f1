"""The pytest plugin: one test function on several real JAX processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spmdlint.testing.job import Job
from tests.runtime.forked import Forked, can_fork

LIMIT = 280


# Other plugins that are installed here take most of the time that a process of pytest needs to start.
OURS_ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "spmdlint.testing.plugin"}


def run_pytest(folder: Path, *argv: str, environment: dict[str, str] | None = None) -> tuple[int | None, str]:
    """Run pytest in a folder, in a session of its own that does not outlive the limit; all plugins if it is {}.

    With an ``environment``, it is a new Python, as are the processes of its jobs; otherwise they are forked.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    kept["COLUMNS"] = "200"
    kept["PYTEST_DEBUG_TEMPROOT"] = str(folder)  # at its end it deletes the temporary folders of earlier sessions there
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-rA", *argv]
    if environment is None and can_fork(kept):
        forked = Forked(words, {**kept, **OURS_ALONE}, folder)
        try:
            return forked.returncode, forked.communicate(LIMIT)[0] + f"\nstatus {forked.wait()}"
        finally:
            forked.kill()
    started = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**kept, **(OURS_ALONE if environment is None else environment)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return started.returncode, started.communicate(timeout=LIMIT)[0] + f"\nstatus {started.wait()}"
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def outcomes(text: str) -> dict[str, str]:
    found = re.findall(r"^(PASSED|FAILED|SKIPPED|XFAIL|ERROR) (?:\[1\] )?\S*?(test_\w+)(?:\[\S+\])?[ :\n]", text, re.M)
    return {name: outcome for outcome, name in found if outcome != "SKIPPED"}


TESTS = """\
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils


@pytest.fixture
def rank():
    assert jax.process_count() == 2
    return jax.process_index()


@pytest.mark.spmd(processes=2, devices=2)
@pytest.mark.parametrize("start", [10])
def test_together(rank, start, spmd_tmp_path):
    assert jax.device_count() == 4
    (spmd_tmp_path / str(rank)).write_text("here")
    gathered = multihost_utils.process_allgather(np.array([start + rank]))
    assert gathered.ravel().tolist() == [10, 11]
    assert sorted(path.name for path in spmd_tmp_path.iterdir()) == ["0", "1"]


@pytest.mark.spmd(processes=2)
def test_one_fails(rank):
    print("written by", rank)
    multihost_utils.process_allgather(np.array([rank]))
    assert rank == 0, "not the first"


@pytest.mark.spmd(processes=2, timeout=100)
def test_they_part(rank):
    if rank == 0:
        multihost_utils.process_allgather(np.array([rank]))


def gather(array):
    return multihost_utils.process_allgather(array)


@pytest.mark.spmd(processes=2)
def test_they_part_in_a_helper(rank):
    if rank == 0:
        gather(np.ones(2))


@pytest.mark.spmd(processes=2, mode="background")
def test_shapes_differ(rank):
    multihost_utils.process_allgather(np.ones(3))
    multihost_utils.process_allgather(np.ones(4 + rank))


@pytest.mark.spmd(processes=1)
@pytest.mark.xfail(strict=True, reason="not yet")
def test_expected_to_fail():
    assert jax.process_count() == 2


@pytest.mark.spmd(processes=2)
@pytest.mark.xfail(strict=True, reason="process 1 makes no call")
def test_expected_to_part(rank):
    if rank == 0:
        gather(np.ones(2))


@pytest.mark.spmd(processes=1)
def test_skipping():
    pytest.skip("not on this host")


@pytest.mark.spmd(processes=1)
def test_expecting_to_fail_inside():
    pytest.xfail("known to fail here")


@pytest.mark.spmd(processes=2)
def test_one_expects_to_fail(rank):
    if rank == 1:
        pytest.xfail("known to fail here")


@pytest.mark.spmd(processes=2)
@pytest.mark.skip(reason="never started")
def test_marked_as_skipped(rank):
    raise AssertionError


def test_beside_them(tmp_path):
    import sys

    assert jax.process_count() == 1
"""


PARTING = "they_part or differ or one_fails or to_part"
PASSING = "together or beside"


def test_a_job_that_passes_is_one_test_beside_others(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "test_spmd.py").write_text(TESTS)
    _, text = run_pytest(tmp_path, "-k", PASSING)
    assert outcomes(text) == {"test_together": "PASSED", "test_beside_them": "PASSED"}, text
    assert "2 passed, 10 deselected" in text


def test_each_process_says_how_it_went(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "test_spmd.py").write_text(TESTS)
    _, text = run_pytest(tmp_path, "-k", f"not ({PARTING} or {PASSING})")
    assert outcomes(text) == {
        "test_expected_to_fail": "XFAIL",
        "test_expecting_to_fail_inside": "XFAIL",
        "test_one_expects_to_fail": "FAILED",
    }, text
    assert "1 failed, 2 skipped, 7 deselected, 2 xfailed" in text
    assert "process 1 failed as expected, and process 0 did not." in text
    assert "known to fail here" in text
    assert "not on this host" in text


def test_processes_that_part_or_fail_alone_are_told(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "test_spmd.py").write_text(TESTS)
    _, text = run_pytest(tmp_path, "-k", PARTING)
    assert outcomes(text) == {
        "test_one_fails": "FAILED",
        "test_they_part": "FAILED",
        "test_they_part_in_a_helper": "FAILED",
        "test_shapes_differ": "FAILED",
        "test_expected_to_part": "XFAIL",
    }, text
    assert "4 failed, 7 deselected, 1 xfailed" in text
    stack = text[text.index("stack, innermost last:") :].splitlines()[1:3]
    assert [line.rpartition(" in ")[2] for line in stack] == ["test_they_part_in_a_helper", "gather"]
    differing = text[text.index("test_shapes_differ __") :].splitlines()
    assert differing[1].startswith("spmdlint: diverged ("), "the verdict is above what the backend made of it"
    fails, _, parts = text.partition("test_they_part __")
    assert "- process 1 -" in fails
    assert "AssertionError: not the first" in fails
    assert "written by 1" in fails
    assert "written by 0" not in fails
    assert "spmdlint: diverged (missing)" in parts
    summary = text[text.index("short test summary") :]
    assert "test_one_fails - process 1: AssertionError: not the first" in summary
    assert "test_they_part - diverged: process 1 finished after 0 parallel calls" in summary
    assert "test_shapes_differ - diverged: " in summary
    assert "test_spmd.py:" in parts


WRONG = """\
import pytest


@pytest.mark.spmd(processes=0)
def test_number():
    pass


@pytest.mark.spmd(prozesses=2)
def test_name():
    pass


@pytest.mark.spmd(mode="tight")
def test_mode():
    pass
"""


def test_a_marker_that_is_used_wrongly_says_so(tmp_path):
    (tmp_path / "test_wrong.py").write_text(WRONG)
    _, text = run_pytest(tmp_path)
    assert "processes must be an integer of at least 1, not 0" in text
    assert "there is no argument 'prozesses'; did you mean 'processes'?\n" in text
    assert "mode must be one of lockstep, background, off, not 'tight'" in text
    assert "3 failed" in text


def test_a_module_that_cannot_be_imported_in_the_job(tmp_path):
    pytest.importorskip("jax")
    text = "import os\n\nimport pytest\n\nassert 'SPMDLINT_TEST_RESULTS' not in os.environ\n\n\n"
    (tmp_path / "test_bad.py").write_text(f"{text}@pytest.mark.spmd(processes=2)\ndef test_it():\n    pass\n")
    _, text = run_pytest(tmp_path, environment={})  # with the other plugins, such as pytest-xdist
    assert "1 failed" in text
    assert "process 0, output" in text
    assert "test_bad.py:5" in text


def test_the_plugin_is_found(tmp_path):
    _, text = run_pytest(tmp_path, "--markers", environment={})
    assert "@pytest.mark.spmd(processes=2, devices=1" in text


def test_the_plugin_brings_no_jax(tmp_path, monkeypatch):
    """Other plugins that are installed here import it, so they are left out."""
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    assert 'spmdlint.testing.plugin' in sys.modules\n"
        "    assert not {'jax', 'numpy', 'libcst', 'spmdlint.runtime_checks'} & set(sys.modules)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "spmdlint.testing.plugin", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout


def test_a_job_over_its_time_is_ended(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    (tmp_path / "test_slow.py").write_text(
        "import time\n\nimport pytest\n\n\n"
        "@pytest.mark.spmd(processes=1, timeout=3)\ndef test_it():\n    time.sleep(500)\n"
    )
    _, text = run_pytest(tmp_path)
    assert "1 failed" in text
    assert "spmdlint: late: out of time" in text


def test_defaults():
    assert Job.from_mark((), {}) == Job(2, 1, "lockstep", 120.0)
    assert Job.from_mark((4,), {"devices": 2}) == Job(4, 2, "lockstep", 120.0)


@pytest.mark.parametrize("timeout", [-1, 0, "8", True, float("nan"), float("inf")])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(TypeError, match="timeout must be a number of seconds above 0"):
        Job.from_mark((), {"timeout": timeout})


def test_a_skip_is_shown_at_the_test(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n\n@pytest.mark.spmd(processes=1)\ndef test_it():\n    pytest.skip('not here')\n"
    )
    _, text = run_pytest(tmp_path, "-rs")
    assert "SKIPPED [1] test_it.py:4: not here" in text or "SKIPPED [1] test_it.py:5: not here" in text, text


def test_without_jax_the_summary_says_what_to_install(tmp_path):
    (tmp_path / "sitecustomize.py").write_text('import sys\n\nsys.modules["jax"] = None  # as if it were not there\n')
    (tmp_path / "test_it.py").write_text("import pytest\n\n@pytest.mark.spmd\ndef test_it():\n    pass\n")
    _, said = run_pytest(tmp_path, environment={**OURS_ALONE, "PYTHONPATH": str(tmp_path)})
    assert "FAILED test_it.py::test_it - not run: jax is not installed here: pip install 'spmdlint[runtime]'" in said
    assert "The job did not run:\nspmdlint: jax is not installed here" in said
