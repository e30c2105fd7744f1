"""Options for fixes, with ruff's meaning: which are applied, whether files or a diff are written, the exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from spmdlint.cli.commands import complain
from spmdlint.diagnostics import fixable
from spmdlint.engine import Checked
from spmdlint.errors import UsageError
from spmdlint.files.read import is_notebook
from spmdlint.files.write import encoded, rewrite, written
from spmdlint.fixes.patch import patch
from spmdlint.fixes.rounds import Fixed, fix_all
from spmdlint.identity import relative

SUCCESS = 0
CHANGES = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("fixes")
    group.add_argument("--fix", action="store_true", help="apply safe fixes, which keep the program's meaning")
    group.add_argument("--unsafe-fixes", action="store_true", help="also apply fixes that need review")
    group.add_argument("--fix-only", action="store_true", help="apply fixes, and do not show the remaining findings")
    group.add_argument("--diff", action="store_true", help="show what --fix would change, but change nothing")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if anything was fixed")


def wanted(options: argparse.Namespace) -> bool:
    """Whether fixes are to be applied or shown."""
    return bool(options.fix or options.fix_only or options.diff)


def fix(
    checked: Checked,
    again: Callable[[Mapping[Path, str]], Checked],
    options: argparse.Namespace,
    top: Path,
    typed: bytes,
) -> Fixed:
    """Apply the fixes to files, standard output or a diff, and report what went wrong.

    ``top`` is the root of the work tree or, if there is none, of the project; ``typed`` is what standard input has.
    """
    fixed = fix_all(checked, again, unsafe=options.unsafe_fixes)
    for problem in fixed.problems:
        complain(problem)
    base = _base(fixed.texts, top)
    if options.diff:
        sys.stdout.flush()
        for path, text in sorted(fixed.texts.items()):
            data = typed if "-" in options.paths else None
            old, new = (_as_shown(path, data, each) for each in (fixed.before[path], text))
            sys.stdout.buffer.writelines(patch(old, new, relative(path, base)))
    elif "-" in options.paths:
        for path in checked.asked & set(checked.sources):
            text = fixed.texts.get(path, checked.sources[path].text)
            sys.stdout.write(encoded(path, typed, text).decode("utf-8") if is_notebook(path) else text)
    else:
        for path, text in fixed.texts.items():
            rewrite(path, text)
    if options.diff or options.fix_only:
        done = "Would fix" if options.diff else "Fixed"
        where = f" Apply the diff in {base}." if options.diff and base != Path.cwd() else ""
        complain(f"{done} {fixed.count} problem{'' if fixed.count == 1 else 's'}{_left(fixed, options)}.{where}")
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


def _base(paths: Iterable[Path], top: Path) -> Path:
    """The folder to which a diff names files: the current one if they all are in it, since no patch leads out of it."""
    here = Path.cwd()
    return here if all(here in path.parents for path in paths) else top


def _as_shown(path: Path, typed: bytes | None, text: str) -> bytes:
    """What a diff compares: the bytes of the file, or the code of a notebook."""
    if not is_notebook(path):
        return written(path, _bytes(path) if typed is None else typed, text)
    from spmdlint.files.notebooks import original

    return "\n".join(map(original, text.split("\n"))).encode("utf-8")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
