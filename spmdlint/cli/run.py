"""``spmdlint run``: rehearse a multi-process program on this machine, under the runtime checks."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.cli.numbers import count
from spmdlint.errors import UsageError

if TYPE_CHECKING:
    from spmdlint.runtime_checks.report import Report

FAILED_STATUS = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options and arguments of the command."""
    parser.usage = "spmdlint run -n N [options] [--] (script.py | -m module) [args...]"
    parser.add_argument("-n", "--processes", type=count, required=True, metavar="N", help="number of processes")
    parser.add_argument(
        "--devices-per-process", type=count, default=1, metavar="D", help="CPU devices in each process (default: 1)"
    )
    parser.add_argument(
        "--mode",
        choices=("lockstep", "background", "off"),
        default="lockstep",
        help="compare every call before it is dispatched (the default), compare afterwards, or only run",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report to this file as JSON")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write the verdict to this file as SARIF")
    parser.add_argument(
        "--output-format",
        choices=("text", "github"),
        default="text",
        help="github: also print the verdict as a GitHub Actions annotation",
    )
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="end the run after S seconds, with status 124")
    parser.add_argument("--log-dir", type=Path, metavar="DIR", help="write each process's output to a file there")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="record each process's last calls in a file there")
    # A separate option: argparse takes no positional that begins with a dash, except after "--".
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the script, or -m and a module, and its arguments")


def main(options: argparse.Namespace) -> int:
    """Run the command; the status is the script's own, 3 on divergence, 124 on time-out, 2 if it cannot be run."""
    from spmdlint.runtime_checks.launch import launcher

    command = list(options.command)
    if command and command[0] == "--":
        command = command[1:]
    if options.module is not None:
        command = ["-m", *options.module]
    try:
        words = launcher.check_command(command)
        for path in (options.report, options.sarif):
            if path is not None:
                launcher.check_writable(path)
        if importlib.util.find_spec("jax") is None:
            raise launcher.LaunchError("jax is not installed here: pip install 'spmdlint[runtime]'.")
        plan = launcher.Plan(
            processes=options.processes,
            command=words,
            devices=options.devices_per_process,
            mode=options.mode,
            timeout=options.timeout,
            log_folder=options.log_dir,
            ledger_folder=options.ledger,
        )
        report, status = launcher.launch(plan)
    except launcher.LaunchError as error:
        sys.stderr.write(f"spmdlint: {error}\n")
        return FAILED_STATUS
    launcher.show(report, _codes() if report.explained_by else None)
    try:  # a disk that is full by now costs the files, not the verdict
        if options.report is not None:
            launcher.write_report(report, options.report)
        _tell(report, Path(words[0]), options)
    except (launcher.LaunchError, UsageError) as error:
        sys.stderr.write(f"spmdlint: {error}\n")
    return status


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


def _codes() -> frozenset[str] | None:
    """The codes of the linter's rules; None if they do not load, which must not cost the report."""
    from spmdlint.rule import load_rules

    try:
        return frozenset(rule.code for rule in load_rules())
    except UsageError:
        return None
