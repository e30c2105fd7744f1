"""A rehearsal: N processes of one program on this machine, and one report at the end.

The launcher never imports jax. It starts the coordination service and the processes, passes on their output, detects
dead processes, and leaves no process behind.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from types import FrameType

from spmdlint.runtime_checks import options
from spmdlint.runtime_checks.launch import cluster, findings
from spmdlint.runtime_checks.launch.cluster import ASKED_BY, answer_of
from spmdlint.runtime_checks.launch.output import Output
from spmdlint.runtime_checks.launch.result import Ended, Run, absent_from_start, after_death, blame_threads
from spmdlint.runtime_checks.launch.service import end_all, held_port
from spmdlint.runtime_checks.launch.starting import command_of
from spmdlint.runtime_checks.records import State
from spmdlint.runtime_checks.reporting.printing import plain
from spmdlint.runtime_checks.reporting.report import Report, as_text, explanation
from spmdlint.runtime_checks.transport.runfolder import RunFolder

TICK = 0.03
AFTER_VERDICT = 12.0  # seconds for the other processes to exit once there is a report
ABSENT_AFTER = 3.0
STATES_WITHIN = 2.0  # seconds for the processes to say where they are at a time-out or an interrupt
SHOWN_OF_LOG = 16  # lines


class LaunchError(Exception):
    """The launcher cannot do its job; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: ``command`` is a script with its arguments, or "-m", a module and its arguments."""

    processes: int
    command: tuple[str, ...]
    devices: int = 1
    mode: str = "lockstep"
    timeout: float | None = None
    log_folder: Path | None = None
    ledger_folder: Path | None = None


def launch(plan: Plan) -> tuple[Report, int]:
    """Run a plan to its end, and print the report, before the linter is asked; returns it and the exit status.

    Raises:
        LaunchError: the launcher cannot do its job.

    """
    refused = options.unsupported(_installed_jax()) or options.too_many(plan.mode, plan.processes, "--mode background")
    if refused is not None:
        raise LaunchError(refused)
    with ExitStack() as held:
        for folder in (plan.log_folder, plan.ledger_folder):
            if folder is not None:
                _make(folder)
        port = held.enter_context(held_port())
        scratch = held.enter_context(tempfile.TemporaryDirectory(prefix="spmdlint-run-"))
        running = _Launcher(plan, Path(scratch), port)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            held.callback(signal.signal, number, signal.signal(number, running.on_signal))
        held.callback(running.end)
        report, status = running.run()
        running.end_job()
        show(report)
        shown = len(report.notes)
        if status != options.INTERRUPTED_STATUS:  # which no line of the program explains
            findings.join(report, plan.command, environment=running.environment(), interrupted=running.interrupted)
        sys.stderr.writelines(f"  Note: {plain(note)}\n" for note in report.notes[shown:])
    return report, status


class _Launcher:
    def __init__(self, plan: Plan, scratch: Path, port: int) -> None:
        self._plan = plan
        try:
            self._end_within = options.end_within()
        except ValueError as error:
            raise LaunchError(str(error)) from None
        self._address = f"127.0.0.1:{port}"
        self._folder = RunFolder(scratch)
        self._output = Output(plan.log_folder)
        self._service = self._start_service()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended: dict[int, Ended] = {}
        self._killed: set[int] = set()
        self._interrupts = 0
        self._began = time.monotonic()
        self._stopped = self._over = False

    def end(self) -> None:
        self.end_job()
        self._service.kill()
        self._service.communicate()

    def end_job(self) -> None:
        if self._over:
            return
        self._over = True
        for process in self._processes:
            _signal_group(process, signal.SIGKILL)
        for process in self._processes:
            process.wait()
        if sys.platform.startswith("linux"):
            end_all(str(self._folder.folder))
        self._output.drain()

    def run(self) -> tuple[Report, int]:
        for number in range(self._plan.processes):
            if self._is_due():
                break
            self._start_process(number)
        while len(self._ended) < len(self._processes):
            self._output.pass_on(TICK)
            self._collect()
            if self._is_due():
                self._stop()
                break
            self._press_for_end()
        self._output.drain()
        if not self.interrupted() and len(self._processes) < self._plan.processes:
            raise LaunchError(
                f"The time-out expired after {len(self._processes)} of {self._plan.processes} processes were started: "
                "start fewer, or raise --timeout."
            )
        states = {number: self._folder.states.get(number) or State() for number in range(self._plan.processes)}
        left = self._folder.report()
        if left is None and self._plan.mode == "background":
            left = after_death(self._folder.folder, self._ended, states)
        joined = [number for number in states if self._folder.joined.get(number) is not None]
        run = Run(self._plan.mode, self._ended, states, joined, self._stopped, self.interrupted())
        report, status = run.conclude(left)
        blame_threads(report, self._folder.folder, self._ended)
        return report, status

    def _is_due(self) -> bool:
        """Whether the run has to end now, however far it is: the time-out has expired, or it was interrupted."""
        late = self._plan.timeout is not None and time.monotonic() - self._began > self._plan.timeout
        return late or self.interrupted()

    def interrupted(self) -> bool:
        return self._interrupts > 0

    def environment(self) -> dict[str, str]:
        """That of all that this starts: what has it ends with this launcher, whatever ends that (Linux)."""
        return {**os.environ, options.RUN_FOLDER_VARIABLE: str(self._folder.folder)}

    def _start_service(self) -> subprocess.Popen[bytes]:
        about = [self._address, str(self._plan.processes), str(self._folder.folder)]
        with (self._folder.folder / "service.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603
                [*command_of("spmdlint.runtime_checks.launch.service"), *about],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def _start_process(self, number: int) -> None:
        plan = self._plan
        environment = {
            **self.environment(),
            # As on real hosts, each process iterates over sets of strings in its own order.
            "PYTHONHASHSEED": str(random.SystemRandom().randrange(1, 2**32)),
            "PYTHONUNBUFFERED": "1",
            "JAX_PLATFORMS": "cpu",
            cluster.DEVICES: str(plan.devices),
            cluster.COORDINATOR: self._address,
            cluster.COUNT: str(plan.processes),
            options.PROCESS_VARIABLE: str(number),
            cluster.LAUNCHER: str(os.getpid()),
            options.MODE_VARIABLE: plan.mode,
        }
        if plan.ledger_folder is not None:
            environment[options.LEDGER_VARIABLE] = str(plan.ledger_folder.resolve())
        environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        process = subprocess.Popen(  # noqa: S603
            [*command_of("spmdlint.runtime_checks.launch.runner"), *plan.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._processes.append(process)
        assert self._service.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        # What it starts ends with this launcher, too, if it changes its environment (Linux).
        with suppress(OSError):  # the service was ended; the processes of the job still end with this one
            self._service.stdin.write(f"{process.pid}\n".encode())
            self._service.stdin.flush()
        self._output.add(number, "out", process.stdout, sys.stdout.buffer)
        self._output.add(number, "err", process.stderr, sys.stderr.buffer)

    def _collect(self) -> None:
        for number, process in enumerate(self._processes):
            if number not in self._ended and process.poll() is not None:
                ours = number in self._killed and process.returncode == -signal.SIGKILL
                self._ended[number] = Ended(process.returncode, time.monotonic(), by_launcher=ours)
                self._folder.ended.put(number, {"status": process.returncode})
        service = self._service
        if service.poll() is not None and len(self._ended) < len(self._processes):
            log = (self._folder.folder / "service.log").read_text(errors="replace").splitlines()
            shown = "\n".join(log if len(log) <= SHOWN_OF_LOG else ["...", *log[-SHOWN_OF_LOG:]])
            raise LaunchError(f"The coordination service ended with status {service.returncode}:\n{shown}")

    def _press_for_end(self) -> None:
        """Once the job is over for one process, the others get so long to end as well."""
        now, failed = time.monotonic(), [one.when for one in self._ended.values() if one.status != 0]
        if self._leaves_some_waiting(now):
            self._kill_rest()
        elif failed:
            patience = AFTER_VERDICT if self._folder.report() is not None else self._end_within
            if now > min(failed) + patience:
                self._kill_rest()

    def _leaves_some_waiting(self, now: float) -> bool:
        """Whether one that ended before the job began leaves the others waiting in ``jax.distributed.initialize``."""
        if self._plan.mode == "off" or self._folder.report() is not None:
            return False
        folder, all_started = self._folder, range(self._plan.processes)
        gone = [number for number, one in self._ended.items() if now - one.when > ABSENT_AFTER]
        absent = {number: folder.states.get(number) or State() for number in gone if folder.joined.get(number) is None}
        running = (number for number in all_started if number not in self._ended and folder.joined.get(number) is None)
        waiting = {number: site for number in running if (site := folder.joining.get(number)) is not None}
        if absent and waiting:
            self._folder.put_report(absent_from_start(absent, waiting))
        return bool(absent and waiting)

    def _kill_rest(self) -> None:
        for number, process in enumerate(self._processes):
            if number not in self._ended:
                if process.poll() is None:
                    self._killed.add(number)
                _signal_group(process, signal.SIGKILL)

    def _stop(self) -> None:
        """End all processes, once those that can have said where they are; at once after a second interrupt.

        They are not interrupted themselves: what one has not done when it is would look like a divergence to others.
        """
        self._folder.mark("where")
        # With the checks off, nobody answers; before the job has begun, only Python itself.
        limit = time.monotonic() + (STATES_WITHIN if self._plan.mode != "off" else 0)
        early = [number for number in range(len(self._processes)) if self._folder.joined.get(number) is None]
        for number in early if self._plan.mode != "off" else ():
            if number not in self._ended:
                self._processes[number].send_signal(ASKED_BY)
        while time.monotonic() < limit and self._interrupts < 2:
            self._output.pass_on(TICK)
            self._collect()
            for number in self._without_word(early):
                told = answer_of(self._folder.folder, number)
                if told is not None:
                    self._folder.states.put(number, told)
            if not self._without_word(range(len(self._processes))):
                break
        self._stopped = len(self._ended) < self._plan.processes  # the processes may just have ended
        self._kill_rest()

    def _without_word(self, numbers: Iterable[int]) -> list[int]:
        """Those of some processes that run and have not said where they are."""
        return [number for number in numbers if number not in self._ended and not self._folder.states.get(number)]

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupts += 1


def _installed_jax() -> str | None:
    """The version of JAX that the processes will import, from its metadata: importing it takes a second."""
    try:
        return metadata.version("jax")
    except metadata.PackageNotFoundError:
        return None


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _make(folder: Path) -> None:
    """Make a folder for the output of this run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"The folder {folder} cannot be created: {error.strerror}. Name a different one.") from error


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Try to open a file that is written at the end; leaves none if nothing was written.

    Raises :class:`LaunchError` before a long run if that cannot be.
    """
    existed = path.exists()
    try:
        file = path.open("ab")
    except OSError as error:
        raise LaunchError(f"{path} cannot be written: {error.strerror}. Name a different file.") from error
    file.close()
    try:
        yield
    finally:
        if not existed and path.is_file() and not path.stat().st_size:
            path.unlink()


def show(report: Report) -> None:
    """Print the report for a person, if there is something to report, before the linter is asked about it."""
    if _is_long(report):
        width = min(shutil.get_terminal_size().columns, 100)
        sys.stderr.write("-" * width + "\n" + as_text(replace(report, explained_by=[])))
    else:
        sys.stderr.write(f"spmdlint: {report.verdict}: {report.message}\n")
        sys.stderr.writelines(f"  Note: {plain(note)}\n" for note in report.notes)
    sys.stderr.flush()


def show_findings(report: Report) -> None:
    """Print what the linter says of a report that was shown."""
    sys.stderr.writelines(f"{plain(line)}\n" for line in (explanation(report) if _is_long(report) else ()))
    sys.stderr.flush()


def _is_long(report: Report) -> bool:
    raised = any(process.state == "raised" for process in report.processes.values())
    return report.verdict in ("diverged", "late") or (
        report.verdict == "failed" and (raised or report.advice is not None)
    )


def check_command(command: Sequence[str]) -> tuple[str, ...]:
    """A command that can be run, or :class:`LaunchError` with what to type instead."""
    if not command:
        raise LaunchError("There is no script to run: spmdlint run -n 2 train.py")
    if command[0] == "-m":
        if len(command) == 1:
            raise LaunchError("-m needs the name of a module: spmdlint run -n 2 -m train")
    else:
        path = Path(command[0])
        if path.is_dir():
            raise LaunchError(f"{path} is a folder: `spmdlint check {path}` lints it; `spmdlint run` takes a script.")
        if not path.is_file():
            raise LaunchError(f"There is no script {path}.")
    return tuple(command)
