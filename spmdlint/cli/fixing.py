"""Options for fixes, with ruff's meaning: which are applied, whether files or a diff are written, the exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from spmdlint.cli.commands import complain
from spmdlint.diagnostics import fixable
from spmdlint.engine import Checked
from spmdlint.files.read import is_notebook, split_rows
from spmdlint.files.write import encoded, rewrite
from spmdlint.fixes.rounds import Fixed, fix_all

SUCCESS = 0
CHANGES = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("fixes")
    group.add_argument("--fix", action="store_true", help="apply safe fixes, which keep the program's meaning")
    group.add_argument("--unsafe-fixes", action="store_true", help="also apply fixes that need review")
    group.add_argument("--fix-only", action="store_true", help="apply fixes, and do not show the remaining findings")
    group.add_argument("--diff", action="store_true", help="show what --fix-only would change, but change nothing")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if anything was fixed")


def wanted(options: argparse.Namespace) -> bool:
    """Whether fixes are to be applied or shown."""
    return bool(options.fix or options.fix_only or options.diff)


def fix(
    checked: Checked,
    again: Callable[[Mapping[Path, str]], Checked],
    options: argparse.Namespace,
    shown: Callable[[Path], str],
    typed: bytes,
) -> Fixed:
    """Apply the fixes to files, standard output or a diff, and report what went wrong.

    ``typed`` is what standard input has.
    """
    fixed = fix_all(checked, again, unsafe=options.unsafe_fixes)
    for problem in fixed.problems:
        complain(problem)
    if options.diff:
        for path, text in sorted(fixed.texts.items()):
            sys.stdout.writelines(_diff(_as_shown(path, fixed.before[path]), _as_shown(path, text), shown(path)))
    elif "-" in options.paths:
        for path in checked.asked & set(checked.sources):
            text = fixed.texts.get(path, checked.sources[path].text)
            sys.stdout.write(encoded(path, typed, text).decode("utf-8") if is_notebook(path) else text)
    else:
        for path, text in fixed.texts.items():
            rewrite(path, text)
    if options.diff or options.fix_only:
        done = "Would fix" if options.diff else "Fixed"
        complain(f"{done} {fixed.count} problem{'' if fixed.count == 1 else 's'}{_left(fixed, options)}.")
    return fixed


def _left(fixed: Fixed, options: argparse.Namespace) -> str:
    """How many fixes wait for ``--unsafe-fixes``, in parentheses; empty if none does."""
    waiting = sum(
        finding.fix is not None and not fixable(finding, unsafe=options.unsafe_fixes)
        for finding in fixed.checked.diagnostics
    )
    return f" ({waiting} more with '--unsafe-fixes')" if waiting else ""


def status(fixed: Fixed, options: argparse.Namespace) -> int:
    """The exit status if the remaining findings are not shown, or if fixing alone decides."""
    if options.diff or options.exit_non_zero_on_fix:
        return CHANGES if fixed.count else SUCCESS
    return SUCCESS


def _as_shown(path: Path, text: str) -> str:
    if not is_notebook(path):
        return text
    from spmdlint.files.notebooks import original

    return "\n".join(map(original, text.split("\n")))


def _diff(old: str, new: str, name: str) -> Iterator[str]:
    import difflib  # only needed for a diff

    yield from (
        line if line.endswith("\n") else f"{line}\n"
        for line in difflib.unified_diff(split_rows(old), split_rows(new), name, name, lineterm="")
    )
