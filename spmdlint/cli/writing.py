"""Writes the findings of a run to standard output or to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from msgspec import Struct, field

from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Severity
from spmdlint.engine import Checked
from spmdlint.errors import UsageError
from spmdlint.files.ignore import git_root
from spmdlint.output import SHOWING_EDITS, renderer
from spmdlint.output.colors import wants_color
from spmdlint.output.report import Description, Report
from spmdlint.rule import Rule, load_rules


class Wanted(Struct, frozen=True):
    """How the findings are written; ``file`` is None for ``stream``. The numbers are those of the report."""

    form: str
    file: Path | None = None
    statistics: bool = False
    stream: TextIO = field(default_factory=lambda: sys.stdout)
    known: int = 0
    recorded: bool = False
    fixed: int = 0
    unsafe_fixes: bool = False
    fail_on: Severity | None = None


def write(checked: Checked, config: Config, wanted: Wanted) -> None:
    """Write the findings.

    Raises:
        UsageError: the file cannot be written.

    """
    pieces = _render(checked, config, wanted)
    if wanted.file is None:
        for piece in pieces:
            wanted.stream.write(piece)
    else:
        write_file(wanted.file, "".join(pieces))


def write_file(path: Path, text: str) -> None:
    """Write a file that the user asked for.

    Raises:
        UsageError: it cannot be written.

    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None


def describe(rule: Rule) -> Description:
    """The description of a rule for the formats."""
    return Description(
        rule.code, rule.name, rule.severity, rule.summary(), rule.page(), rule.preview, rule.url, rule.many
    )


def _nothing(checked: Checked, rules: Sequence[Rule]) -> str:
    """Why a run without findings proves nothing, or ""."""
    if not checked.asked:
        return "No files were checked."
    always = {rule.code for rule in rules if rule.always}
    return "" if checked.ran - always or checked.crashes else "No rules ran."


def _with_edits(checked: Checked) -> tuple[Diagnostic, ...]:
    """The findings, with the edits of all fixes."""
    if all(each.fix is None or each.fix.change is None for each in checked.diagnostics):
        return checked.diagnostics
    from spmdlint.fixes.making import with_edits  # which few findings need

    return tuple(with_edits(checked.diagnostics, checked.sources))


def _render(checked: Checked, config: Config, wanted: Wanted) -> Iterator[str]:
    rules = load_rules(config.rules)
    report = Report(
        _with_edits(checked) if wanted.form in SHOWING_EDITS else checked.diagnostics,
        checked.sources,
        {rule.code: rule.url for rule in rules if rule.url is not None},
        top=git_root(config.root) or config.root,
        rules=tuple(describe(rule) for rule in rules),
        color=wanted.file is None and wants_color(wanted.stream),
        complete=not checked.crashes,
        nothing=_nothing(checked, rules),
        known=wanted.known,
        recorded=wanted.recorded,
        fixed=wanted.fixed,
        unsafe_fixes=wanted.unsafe_fixes,
        counted=wanted.statistics,
        fail_on=wanted.fail_on,
    )
    if report.has_notebooks():
        from spmdlint.output.cells import by_cell

        report = by_cell(report, wanted.form)
    if wanted.statistics:
        from spmdlint.output import statistics

        return statistics.render_json(report) if wanted.form == "json" else statistics.render(report)
    return renderer(wanted.form)(report)
