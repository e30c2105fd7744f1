"""The pytest item for a marked test: it runs the test as a job, and fails with the report of each process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from spmdlint.testing.job import Job, JobFailedAsExpectedError, JobFailedError, JobSkippedError
from spmdlint.testing.plugin import MARK

# Options for other plugins in the processes: a process must not start workers, measure coverage, or apply a time-out.
_QUIET = {"xdist": ("-n", "0"), "pytest_cov": ("--no-cov",), "timeout": ("--timeout", "0")}


def _sentence(text: str) -> str:
    """A text with the full stop that it lacks."""
    return text if text.endswith((".", "?")) else f"{text}."


class JobItem(pytest.Item):
    """A test on several processes. It has no fixtures itself: they are set up in the processes."""

    def __init__(self, *, function: pytest.Function, **named: Any) -> None:
        super().__init__(**named)
        self._function = function
        self.own_markers.extend(mark for mark in function.own_markers if mark not in self.own_markers)
        self.keywords.update(function.keywords)
        self.extra_keyword_matches.update(function.extra_keyword_matches)

    @classmethod
    def standing_for(cls, function: pytest.Function) -> JobItem:
        """The job that runs this test."""
        parent = function.parent
        assert parent is not None
        made: JobItem = cls.from_parent(parent, name=function.name, nodeid=function.nodeid, function=function)
        return made

    def runtest(self) -> None:
        """Run the job."""
        mark = self.get_closest_marker(MARK)
        assert mark is not None
        try:
            job = Job.from_mark(mark.args, mark.kwargs)
        except TypeError as error:
            raise JobFailedError(f"@pytest.mark.{MARK} is used wrongly: {_sentence(str(error))}") from None
        try:
            job.run(self._words(), self.config.invocation_params.dir)
        except JobSkippedError as skipped:
            reason = pytest.skip.Exception(str(skipped))
            # As for the mark: the place that pytest shows is that of the test.
            reason._use_item_location = True
            raise reason from None
        except JobFailedAsExpectedError as failed:
            pytest.xfail(str(failed))

    def _words(self) -> list[str]:
        """The arguments of pytest in the processes."""
        config = self.config
        words = ["--rootdir", str(config.rootpath), "-p", "no:cacheprovider", "-p", "no:randomly"]
        if config.getoption("runxfail"):
            words.append("--runxfail")
        if config.inipath is not None:
            words += ["-c", str(config.inipath)]
        words += ["--import-mode", str(config.getoption("importmode"))]
        for plugin, options in _QUIET.items():
            if config.pluginmanager.hasplugin(plugin):
                words += options
        return [*words, f"{self.path}::{self._function.nodeid.partition('::')[2]}"]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The reports of the processes, without the stack of this plugin."""
        if isinstance(excinfo.value, JobFailedError):
            shown = excinfo.getrepr(style="value")
            crash = getattr(shown, "reprcrash", None)
            if crash is not None:  # the line in pytest's summary
                crash.message = excinfo.value.summary
            return shown
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """The location of the test."""
        path, line, name = self._function.reportinfo()
        return Path(path), line, name
