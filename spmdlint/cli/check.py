"""``spmdlint check``: lint files and folders."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from spmdlint.cli import adoption, fixing, keeping
from spmdlint.cli.commands import FAILURE, complain, wants_traceback
from spmdlint.cli.numbers import count
from spmdlint.cli.progress import ProgressBar
from spmdlint.cli.writing import Wanted, write
from spmdlint.config import Config, override
from spmdlint.diagnostics import Severity
from spmdlint.engine import NOTHING_TO_LINT, Checked, Stdin, check
from spmdlint.errors import UsageError
from spmdlint.files.ignore import git_root
from spmdlint.files.reach import refuse_closed
from spmdlint.files.root import absolute, configure_named
from spmdlint.fixes.rounds import Fixed
from spmdlint.known import without_known
from spmdlint.output import FORMATS
from spmdlint.policy import GRAVITY
from spmdlint.timings import Timings

FINDINGS = 1

USUAL_OPTIONS = (
    "--select", "--ignore", "--preview", "--fix", "--diff", "--baseline", "--write-baseline", "--watch",
    "--output-format", "--statistics",
)  # fmt: skip

_OVERRIDES = ("select", "ignore", "extend_select", "preview", "exclude", "force_exclude")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="files and folders, or '-' for standard input (default: the current folder)",
    )
    rules = parser.add_argument_group("rules", "RULES is a comma-separated list of codes, prefixes of codes or names.")
    rules.add_argument("--select", type=_list, action="extend", metavar="RULES", help="run these rules only")
    rules.add_argument("--ignore", type=_list, action="extend", metavar="RULES", help="do not run these rules")
    rules.add_argument("--extend-select", type=_list, action="extend", metavar="RULES", help="also run these rules")
    rules.add_argument("--preview", action=argparse.BooleanOptionalAction, help="also run preview rules")
    fixing.add_arguments(parser)
    adoption.add_arguments(parser)
    files = parser.add_argument_group("files")
    files.add_argument("--config", type=Path, metavar="FILE", help="read the configuration from this file")
    files.add_argument(
        "--exclude",
        type=_list,
        action="extend",
        metavar="PATTERNS",
        help="leave out files that match these patterns",
    )
    files.add_argument(
        "--force-exclude",
        action=argparse.BooleanOptionalAction,
        help="apply exclusions even to files named on the command line",
    )
    files.add_argument(
        "--touching",
        action="store_true",
        help="also show the findings in other files that come about through these, and count the others",
    )
    files.add_argument(
        "--near",
        action="store_true",
        help="of a large project, look only at the files near these: seconds, and a few other findings",
    )
    files.add_argument(
        "--watch", action="store_true", help="check again whenever a file of the project changes, until Ctrl-C"
    )
    files.add_argument("--stdin-filename", type=Path, metavar="FILE", help="the file that standard input stands for")
    keeping.add_arguments(parser)
    parser.add_argument(
        "-j", "--jobs", type=count, metavar="N", help="number of worker processes (default: chosen by project size)"
    )
    said = parser.add_argument_group("output")
    said.add_argument("--output-format", choices=sorted(FORMATS), default="full", metavar="FORMAT", help=_one_of())
    said.add_argument("-o", "--output-file", type=Path, metavar="FILE", help="write the findings to this file")
    said.add_argument(
        "--statistics", action="store_true", help="show the number of findings per rule instead of the findings"
    )
    said.add_argument(
        "--fail-on", choices=get_args(Severity), help="exit with 1 only for findings of this severity or above"
    )
    said.add_argument(
        "--fail-on-unchecked", action="store_true", help="exit with 2 if a part of what was to be checked was not"
    )
    said.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    said.add_argument("--timings", action="store_true", help="print to standard error where the time goes")
    said.add_argument("-v", "--verbose", action="store_true", help="print what is linted, and internal tracebacks")


# The formats that --statistics supports.
_COUNTED = frozenset(("full", "concise", "json"))


def main(options: argparse.Namespace) -> int:
    """Lint, write the findings, and return the exit status."""
    if options.watch:
        from spmdlint.cli.watching import watch

        return watch(options)
    stdin = _stdin(options)
    if options.statistics and options.output_format not in _COUNTED:
        raise UsageError(f"--statistics has no format {options.output_format}; use full, concise or json.")
    adoption.refuse_with_fixes(options)
    paths = [] if stdin else list(map(absolute, options.paths))
    words = [options.stdin_filename or stdin.path] if stdin else options.paths
    config = configure_named(words, Path.cwd(), options.config, force_exclude=options.force_exclude)
    config = override(config, {name: getattr(options, name) for name in _OVERRIDES})
    if options.verbose:
        complain(f"The project is {config.root}; its configuration is {config.file or 'the default'}.")
    cache = keeping.folder(options, config)
    baseline = adoption.file_of(options, config)

    timings = Timings.begun(samples=options.timings)

    def look(edited: Mapping[Path, str] | None = None, *, near: bool = options.near) -> Checked:
        with ProgressBar() as progress:
            return check(
                config,
                paths,
                stdin=stdin,
                progress=progress,
                edited=edited,
                cache=cache,
                jobs=options.jobs,
                timings=timings,
                touching=options.touching,
                near=near,
            )

    def look_past(edited: Mapping[Path, str]) -> Checked:
        return without_known(baseline, look(edited, near=checked.partial), config.root)

    checked = look()
    for note in checked.notes:
        complain(note)
    if not checked.asked and not checked.notes:
        complain(NOTHING_TO_LINT)
    known = 0
    if baseline is not None:
        checked, known = adoption.apply_baseline(baseline, checked, config, options)
    if options.add_ignore is not None:
        adoption.add_ignores(checked, options.add_ignore)
        checked = look_past({})
    fixed = Fixed(checked)
    if fixing.wanted(options):
        typed = b"" if stdin is None else stdin.data
        fixed = fixing.fix(checked, look_past, options, git_root(config.root) or config.root, typed)
    if not (options.fix_only or options.diff):
        with timings.phase("write"):
            _write(fixed, known, config, options)
    _mention(fixed.checked)
    if options.timings:
        sys.stderr.writelines(f"{line}\n" for line in timings.lines())
    return _status(fixed, config, options)


def _mention(checked: Checked) -> None:
    """Say how many findings the rest of the project has, if the run was to tell what touches some files."""
    if checked.elsewhere and not checked.partial:
        number = len(checked.elsewhere)
        other = "1 other finding" if number == 1 else f"{number} other findings"
        complain(f"{other} elsewhere in the project, which these files do not touch; 'spmdlint check' shows all.")


def _write(fixed: Fixed, known: int, config: Config, options: argparse.Namespace) -> None:
    piped = fixing.wanted(options) and "-" in options.paths  # then standard output carries the text
    stream = sys.stderr if piped else sys.stdout
    wanted = Wanted(
        options.output_format,
        options.output_file,
        options.statistics,
        stream,
        known=known,
        recorded=options.write_baseline,
        fixed=fixed.count,
        unsafe_fixes=options.unsafe_fixes,
        fail_on=None if options.exit_zero else options.fail_on or config.fail_on,
    )
    write(fixed.checked, config, wanted)


def _status(fixed: Fixed, config: Config, options: argparse.Namespace) -> int:
    checked = fixed.checked
    for crash in checked.crashes:
        complain(crash.sentence())
        if options.verbose or wants_traceback():
            sys.stderr.write(crash.trace())
    if checked.crashes:
        return FAILURE
    if options.fail_on_unchecked and checked.unchecked:
        for sentence in checked.unchecked:
            if sentence not in (*checked.notes, NOTHING_TO_LINT):
                complain(sentence)
        complain("Not everything was checked, so the status is 2 (--fail-on-unchecked).")
        return FAILURE
    least = GRAVITY[options.fail_on or config.fail_on]
    failing = any(GRAVITY[finding.severity] >= least for finding in checked.diagnostics)
    if failing and not options.exit_zero and not (options.fix_only or options.diff):
        return FINDINGS
    return fixing.status(fixed, options)


def _stdin(options: argparse.Namespace) -> Stdin | None:
    if "-" not in options.paths:
        if options.stdin_filename is not None:
            raise UsageError("--stdin-filename names the file for '-', but '-' is not among the paths; add it.")
        return None
    if len(options.paths) > 1:
        raise UsageError("'-' must be the only path: lint standard input and files in two runs.")
    if options.add_ignore is not None:
        raise UsageError("--add-ignore writes to files, and '-' is not a file; name the files.")
    path = absolute(options.stdin_filename or "<stdin>")
    refuse_closed(path)
    if path.is_dir():
        raise UsageError(f"--stdin-filename names the folder {path}; name the file that standard input stands for.")
    return Stdin(path, sys.stdin.buffer.read())


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _one_of() -> str:
    return f"format of the findings: {', '.join(FORMATS)}"
