"""A process of a job: it joins the others before a test module is imported, and records the outcome of its test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spmdlint.runtime_checks.options import PROCESS_VARIABLE


def _crash(report: pytest.TestReport) -> str:
    """The assertion or exception of a failed phase, as pytest's summary shows it; empty if there is none."""
    crash = getattr(report.longrepr, "reprcrash", None) if report.failed else None
    return str(getattr(crash, "message", "") or "")


class Process:
    """The plugin in the processes of a job."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.environ[PROCESS_VARIABLE]}.jsonl"

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Join: conftest.py has configured JAX by now, and no test module has used it yet."""
        import jax

        jax.distributed.initialize()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Remove xfail marks: the item of the job handles them, and here the test just fails."""
        for item in items:
            for node in item.listchain():
                node.own_markers[:] = [mark for mark in node.own_markers if mark.name != "xfail"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of the test; the launcher may end this process at any moment."""
        expected = getattr(report, "wasxfail", None)  # by pytest.xfail(), or by a mark that was added meanwhile
        reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else expected or ""
        told = {
            "when": report.when,
            "outcome": "xfailed" if report.skipped and expected is not None else report.outcome,
            "text": report.longreprtext if report.failed else "",
            "crash": _crash(report),
            "reason": reason.removeprefix("Skipped: ").removeprefix("reason: "),
            "sections": [list(section) for section in report.sections],
        }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
