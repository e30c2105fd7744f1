"""The plugin that pytest loads: ``@pytest.mark.spmd(processes=2, devices=1)``.

In the process that the user started, a marked test becomes an item that starts a job; in the processes of that job it
runs as an ordinary test, with its fixtures and parameters. Every run of pytest in an environment with spmdlint imports
this module, so nothing heavy is imported before it is needed, and jax only in the processes of a job.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MARK = "spmd"
RESULTS = "SPMDLINT_TEST_RESULTS"
SHARED = "SPMDLINT_TEST_SHARED"
_ABOUT = (
    "spmd(processes=2, devices=1, mode='lockstep', timeout=120): run this test on several JAX processes with "
    "`devices` CPU devices each, under the runtime checks (lockstep, background or off), for at most `timeout` seconds."
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and join the job in its processes."""
    config.addinivalue_line("markers", _ABOUT)
    if RESULTS in os.environ:
        from spmdlint.testing.process import Process

        config.pluginmanager.register(Process(Path(os.environ[RESULTS])), "spmdlint-process")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace marked tests by jobs, before other plugins look at them, so that these see only jobs."""
    if RESULTS in os.environ:
        return
    for number, item in enumerate(items):
        if isinstance(item, pytest.Function) and item.get_closest_marker(MARK) is not None:
            from spmdlint.testing.item import JobItem

            items[number] = JobItem.standing_for(item)


@pytest.fixture
def spmd_tmp_path(tmp_path: Path) -> Path:
    """An empty folder that all processes of a job share, as hosts share a file system."""
    shared = os.environ.get(SHARED)
    return Path(shared) if shared else tmp_path
