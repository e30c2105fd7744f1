"""``spmdlint run``: rehearse a multi-process program on this machine, under the runtime checks."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.cli.numbers import bounded
from spmdlint.errors import UsageError

if TYPE_CHECKING:
    from spmdlint.runtime_checks.reporting.report import Report

FAILED_STATUS = 2
PER_CORE = 4  # processes, above which it is said that there are many
OPTIONS = (
    "--devices-per-process", "--mode", "--report", "--html", "--sarif", "--output-format", "--timeout", "--log-dir",
    "--ledger", "--fail-on-unchecked",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options and arguments of the command."""
    parser.usage = "spmdlint run -n N [options] [--] (script.py | -m module) [args...]"
    number = "number of processes, such as 2"
    parser.add_argument("-n", "--processes", type=bounded, required=True, metavar="N", help=number)
    parser.add_argument(
        "--devices-per-process", type=bounded, default=1, metavar="D", help="CPU devices in each process (default: 1)"
    )
    parser.add_argument(
        "--mode",
        choices=("lockstep", "background", "off"),
        default="lockstep",
        help="compare every call before it is dispatched (the default), compare afterwards, or only run",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report to this file as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with all calls to this file")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write the verdict to this file as SARIF")
    parser.add_argument(
        "--output-format",
        choices=("text", "github"),
        default="text",
        help="github: also print the verdict as a GitHub Actions annotation",
    )
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="end the run after S seconds, with status 124")
    parser.add_argument(
        "--fail-on-unchecked", action="store_true", help="exit with 2 if the processes ended and nothing was compared"
    )
    parser.add_argument("--log-dir", type=Path, metavar="DIR", help="write each process's output to a file there")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="record each process's last calls in a file there")
    # A separate option: argparse takes no positional that begins with a dash, except after "--".
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the script, or -m and a module, and its arguments")


def main(options: argparse.Namespace) -> int:
    """Run the command; the status is the script's own, 3 on divergence, 124 on time-out, 2 if it cannot be run.

    With ``--fail-on-unchecked`` it is also 2 if nothing was compared.
    """
    from spmdlint.runtime_checks.launch import launcher

    command = list(options.command)
    if command and command[0] == "--":
        command = command[1:]
    if options.module is not None:
        command = ["-m", *options.module]
    try:
        words = launcher.check_command(command)
        if options.module is None and options.command[0] != "--":
            _warn_of_misplaced(command)
        with ExitStack() as files:
            for path in {path.resolve() for path in (options.report, options.html, options.sarif) if path is not None}:
                files.enter_context(launcher.writable(path))
            _warn_of_many(options.processes)
            return _run(options, words)
    except launcher.LaunchError as error:
        sys.stderr.write(f"spmdlint: {error}\n")
        return FAILED_STATUS


def _run(options: argparse.Namespace, words: tuple[str, ...]) -> int:
    """Run a command, and write what is known of it."""
    from spmdlint.runtime_checks.launch import launcher
    from spmdlint.runtime_checks.recording.writing import jobs_in

    if importlib.util.find_spec("jax") is None:
        raise launcher.LaunchError(
            "jax is not installed here: pip install 'spmdlint[runtime]', or '.[runtime]' in a clone of spmdlint."
        )
    with _ledgers(options) as ledgers:
        before = jobs_in(ledgers) if ledgers is not None else []
        plan = launcher.Plan(
            processes=options.processes,
            command=words,
            devices=options.devices_per_process,
            mode=options.mode,
            timeout=options.timeout,
            log_folder=options.log_dir,
            ledger_folder=ledgers,
        )
        report, status = launcher.launch(plan)
        launcher.show_findings(report)
        # A disk that is full by now costs the files, not the verdict.
        if options.html is not None and ledgers is not None:
            _guarded(lambda: _write_page(report, words, [ledgers, *before], options.html))
    if options.report is not None:
        from spmdlint.cli.writing import write_file

        _guarded(lambda: write_file(options.report, json.dumps(report.as_data(), indent=2) + "\n"))
    _guarded(lambda: _tell(report, Path(words[0]), options))
    if options.fail_on_unchecked and report.verdict == "unchecked" and status == 0:
        sys.stderr.write("spmdlint: nothing was compared, so the status is 2 (--fail-on-unchecked).\n")
        return FAILED_STATUS
    return status


def _warn_of_many(processes: int) -> None:
    """Tell of many more processes than this machine has cores, as they start and run one after the other."""
    cores = os.cpu_count() or 1
    if processes > PER_CORE * cores:
        sys.stderr.write(
            f"spmdlint: {processes} processes share {cores} core{'' if cores == 1 else 's'} here and take long to "
            "start and to compile; most faults show with 2 to 4.\n"
        )


def _warn_of_misplaced(command: Sequence[str]) -> None:
    """Tell of options of ``spmdlint run`` among the script's own, where they have no effect; a ``--`` says it is meant.

    An option that the script itself declares is its own.
    """
    text = Path(command[0]).read_text(encoding="utf-8", errors="replace")
    words = (word.partition("=")[0] for word in command[1:])
    for word in dict.fromkeys(word for word in words if word in OPTIONS and not _declares(text, word)):
        sys.stderr.write(
            f"spmdlint: {word} comes after the script, so it is passed to {command[0]} and does not change this run; "
            f"if it is meant for spmdlint, write it before the script: spmdlint run {word} ... {command[0]}. "
            "A -- before the script silences this warning.\n"
        )


def _declares(text: str, option: str) -> bool:
    """Whether a script seems to declare an option: by its name, for argparse, a library of flags, or as a field."""
    name = option.removeprefix("--").replace("-", "[-_]")
    return re.search(rf"""--{name}\b|["']{name}["']|^\s+{name}\s*:""", text, re.MULTILINE) is not None


def _guarded(write: Callable[[], None]) -> None:
    """Write one of the files that were asked for, or say why not."""
    try:
        write()
    except UsageError as error:
        sys.stderr.write(f"spmdlint: {error}\n")


@contextmanager
def _ledgers(options: argparse.Namespace) -> Iterator[Path | None]:
    """The folder for the recordings: the one asked for, or one for as long as the page is not written."""
    if options.ledger is not None or options.html is None:
        yield options.ledger
    else:
        with tempfile.TemporaryDirectory(prefix="spmdlint-ledger-") as folder:
            yield Path(folder)


def _write_page(report: Report, command: Sequence[str], ledgers: Sequence[Path], path: Path) -> None:
    from spmdlint.cli.writing import write_file
    from spmdlint.runtime_checks.page.jobs import page, rehearsed_job

    job = rehearsed_job(report, command, *ledgers)
    write_file(path, page(job))
    shows = (
        "shows the calls of all processes"
        if job.recorded.rows
        else "shows the verdict, and no calls, as none were recorded"
    )
    sys.stderr.write(f"spmdlint: {path} {shows}; open it in a browser.\n")


def _tell(report: Report, script: Path, options: argparse.Namespace) -> None:
    """Write the verdict for a CI server, if asked to."""
    if options.sarif is None and options.output_format == "text":
        return
    from spmdlint.cli import rehearsal

    if options.sarif is not None:
        rehearsal.write_sarif(report, script, options.sarif)
    if options.output_format == "github":
        sys.stdout.writelines(rehearsal.workflow_commands(report, script))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
