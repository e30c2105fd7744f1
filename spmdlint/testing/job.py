"""One test as a job of several processes, under the launcher of ``spmdlint run``: hard limits, and one outcome."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from spmdlint.runtime_checks.reporting.report import as_text
from spmdlint.runtime_checks.reporting.sentences import name_processes
from spmdlint.runtime_checks.transport.runfolder import RunFolder
from spmdlint.testing.plugin import RESULTS, SHARED

GRACE = 30.0  # extra seconds for the launcher after the job's time-out
MODES = ("lockstep", "background", "off")
MAX_OUTPUT = 4000
_SECTION = "-" * 10


class JobFailedError(Exception):
    """The test failed; the text is the report of each process, and ``summary`` the line that says it in short."""

    def __init__(self, text: str, summary: str = "") -> None:
        super().__init__(text)
        self.summary = summary or text


class JobSkippedError(Exception):
    """All processes skipped the test, for the reason given."""


class JobFailedAsExpectedError(Exception):
    """The test failed in all processes as expected, for the reason given."""


_ALIKE = {"skipped": ("skipped the test", JobSkippedError), "xfailed": ("failed as expected", JobFailedAsExpectedError)}


@dataclass(frozen=True, slots=True)
class Job:
    """The job that a marker asks for."""

    processes: int = 2
    devices: int = 1
    mode: str = "lockstep"
    timeout: float = 120.0

    @classmethod
    def from_mark(cls, args: Sequence[Any], named: Mapping[str, Any]) -> Job:
        """The job of a marker; raises :class:`TypeError` if an argument is invalid."""
        known = [each.name for each in fields(cls)]
        for name in named:
            if name not in known:
                near = get_close_matches(name, known, 1)
                raise TypeError(
                    f"there is no argument {name!r}; "
                    + (f"did you mean {near[0]!r}?" if near else f"the arguments are {', '.join(known)}")
                )
        if len(args) > len(known) or set(known[: len(args)]) & set(named):
            raise TypeError(f"its arguments are {', '.join(known)}, each once")
        job = cls(*args, **named)
        for name in ("processes", "devices"):
            if type(getattr(job, name)) is not int or getattr(job, name) < 1:
                raise TypeError(f"{name} must be an integer of at least 1, not {getattr(job, name)!r}")
        if type(job.timeout) not in (int, float) or not 0 < job.timeout < float("inf"):
            raise TypeError(f"timeout must be a number of seconds above 0, not {job.timeout!r}")
        if job.mode not in MODES:
            raise TypeError(f"mode must be one of {', '.join(MODES)}, not {job.mode!r}")
        return job

    def run(self, words: Sequence[str], folder: Path) -> None:
        """Run pytest with these arguments in every process.

        Raises:
            JobFailedError: the test failed in a process, or the processes diverged.
            JobSkippedError: all processes skipped it.
            JobFailedAsExpectedError: it failed in all processes, and they expect it to.

        """
        with tempfile.TemporaryDirectory(prefix="spmdlint-test-") as scratch:
            results = Path(scratch)
            for name in ("results", "shared", "logs"):
                (results / name).mkdir()
            output = self._launch(words, folder, results)
            _judge(self.processes, results, output)

    def _launch(self, words: Sequence[str], folder: Path, results: Path) -> str:
        """Run the launcher and return its output. It is killed on time-out or if an exception is raised."""
        command = [sys.executable, "-m", "spmdlint", "run", "-n", str(self.processes)]
        command += ["--devices-per-process", str(self.devices), "--mode", self.mode, "--timeout", str(self.timeout)]
        command += ["--report", str(results / "report.json"), "--log-dir", str(results / "logs")]
        command += ["--", "-m", "pytest", *words]
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_XDIST", "PYTEST_CUR"))
        }
        environment = {**kept, RESULTS: str(results / "results"), SHARED: str(results / "shared")}
        launcher = subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            return launcher.communicate(timeout=self.timeout + GRACE)[1]
        except subprocess.TimeoutExpired:
            return f"The launcher did not end within {self.timeout + GRACE:.0f} s."
        finally:
            if launcher.poll() is None:  # its processes die with it
                os.killpg(launcher.pid, signal.SIGKILL)
                launcher.wait()


def _judge(processes: int, results: Path, output: str) -> None:
    """Fail or skip, as the processes did."""
    phases = {number: _phases(results / "results" / f"{number}.jsonl") for number in range(processes)}
    failed = {number: text for number, found in phases.items() if (text := _failure(found))}
    report = RunFolder(results).report()
    if report is None:
        said = [line for line in output.splitlines() if line.strip()]
        why = said[-1].strip().removeprefix("spmdlint: ") if said else "its launcher said nothing."
        raise JobFailedError(f"The job did not run:\n{output[-MAX_OUTPUT:]}", f"not run: {why}")
    silent = [number for number, found in phases.items() if not any(phase["when"] == "teardown" for phase in found)]
    if report.verdict in ("clean", "unchecked") and not failed and not silent:
        _judge_alike(phases)
        return
    parts = [f"{_SECTION} {name_processes(numbers)} {_SECTION}\n{text}" for text, numbers in _together(failed)]
    if report.verdict in ("diverged", "late"):
        # A failure after a divergence, such as a broken connection, says less than the verdict; one before it says why
        # the others waited in vain.
        first = report.verdict == "diverged" and not any(one.state == "raised" for one in report.processes.values())
        parts.insert(0 if first else len(parts), as_text(report))
        failed = {} if first else failed
    summary = _summary(phases) if failed else f"{report.verdict}: {report.message}"
    if not parts:
        parts = [f"{report.message}\n"]
        parts += [f"{_SECTION} {name_processes([n])}, output {_SECTION}\n{_log(results, n)}" for n in silent]
    raise JobFailedError("\n".join(parts), summary)


def _summary(phases: Mapping[int, Sequence[Mapping[str, Any]]]) -> str:
    """The assertion that failed, and the processes in which it did; the first one, if they differ."""
    crashes = {
        number: next((phase["crash"] for phase in found if phase["outcome"] == "failed"), "")
        for number, found in phases.items()
        if _failure(found)
    }
    text, numbers = _together(crashes)[0]
    return f"{name_processes(numbers)}: {text}"


def _judge_alike(phases: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
    """Skip, or fail as expected, if all processes do so; if only some do, that is a failure."""
    for outcome, (words, alike) in _ALIKE.items():
        found = {number: one["reason"] for number, said in phases.items() for one in said if one["outcome"] == outcome}
        others = [number for number in phases if number not in found]
        if found and others:
            raise JobFailedError(f"{name_processes(found)} {words}, and {name_processes(others)} did not.")
        if found:
            raise alike(next(iter(found.values())))


def _phases(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _failure(phases: Sequence[Mapping[str, Any]]) -> str:
    """The failure report of a process, with its output; empty if it did not fail."""
    found = [phase for phase in phases if phase["outcome"] == "failed"]
    texts = []
    for phase in found:
        texts.append(phase["text"])
        texts += [f"{_SECTION} {title} {_SECTION}\n{text}" for title, text in phase["sections"] if text]
    return "\n".join(texts)


def _together(texts: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Group the processes by their report."""
    by_text: dict[str, list[int]] = {}
    for number, text in texts.items():
        by_text.setdefault(text, []).append(number)
    return list(by_text.items())


def _log(results: Path, number: int) -> str:
    parts = []
    for stream in ("out", "err"):
        path = results / "logs" / f"{number}.{stream}"
        if path.exists():
            parts.append(path.read_text(errors="replace")[-MAX_OUTPUT:])
    return "".join(parts)
