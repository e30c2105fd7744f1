"""A process of a job: it joins the others before a test module is imported, and puts down how its test went."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spmdlint.runtime_checks.options import PROCESS_VARIABLE


class Process:
    """A plugin within the processes of a job."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.environ[PROCESS_VARIABLE]}.jsonl"

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Join: what conftest.py configures of JAX holds by now, and no test module has used it yet."""
        import jax

        jax.distributed.initialize()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Put down one phase of the test; the launcher may end this process in the next moment."""
        reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
        told = {
            "when": report.when,
            "outcome": report.outcome,
            "text": report.longreprtext if report.failed else "",
            "reason": reason.removeprefix("Skipped: "),
            "sections": [list(section) for section in report.sections],
        }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
