"""The data that every format receives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from spmdlint.diagnostics import Diagnostic, Related, Severity, by_cause, fixable
from spmdlint.files.read import Source, is_notebook
from spmdlint.policy import GRAVITY

_OF_CELL = re.compile(r"(?P<path>.+\.ipynb):cell (?P<number>\d+)")

_MANY = 20
"""From so many findings of one rule on, the last line says what to do about them."""


_FIRST, _LAST = 3, 5
"""Of many steps, so many are shown from each end: where a difference comes about, and how it gets to the finding."""


class Description(Struct, frozen=True):
    """A rule, for formats that declare their rules; ``page`` is Markdown."""

    code: str
    name: str
    severity: Severity
    summary: str
    page: str
    preview: bool = False
    url: str | None = None
    many: str = ""
    """What to do if there are many findings of it, as a sentence."""


class Report(Struct, frozen=True):
    """The findings of a run, in order, and the data to show them."""

    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[Path, Source] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    """The URL of a rule's page, by code, for rules that have one."""
    base: Path = field(default_factory=Path.cwd)
    """The folder to which shown paths are relative."""
    top: Path = field(default_factory=Path.cwd)
    """The root of the work tree: the paths that servers read are relative to it, wherever the linter runs."""
    rules: tuple[Description, ...] = ()
    color: bool = False
    complete: bool = True
    """Whether all rules ran to their end."""
    nothing: str = ""
    """Why nothing was checked, as a sentence; empty if something was."""
    known: int = 0
    """How many findings are not shown because they are in a baseline."""
    recorded: bool = False
    """Whether this run wrote the baseline."""
    fixed: int = 0
    unsafe_fixes: bool = False
    """Whether unsafe fixes count."""
    counted: bool = False
    """Whether numbers are shown instead of findings."""
    fail_on: Severity | None = None
    """The lowest severity of a finding for which the run fails; None if it fails for no finding."""

    def has_notebooks(self) -> bool:
        """Whether a finding is in a notebook, or its explanation is."""
        return any(
            is_notebook(place.path)
            for finding in self.diagnostics
            for place in (finding.place, *(related.place for related in finding.related))
        )

    def shown(self, path: Path) -> str:
        """A path for a person: relative if it is below the base."""
        try:
            return str(path.relative_to(self.base))
        except ValueError:
            return str(path)


def parted(steps: Sequence[Related]) -> tuple[Sequence[Related], Sequence[Related], Sequence[Related]]:
    """The places that led to a finding, in three parts: those in the middle are left out where there are many."""
    if len(steps) <= _FIRST + _LAST + 1:  # a line about a single step would be no shorter
        return steps, (), ()
    return steps[:_FIRST], steps[_FIRST:-_LAST], steps[-_LAST:]


def split_cell(path: Path) -> tuple[str, int | None]:
    """The file that a path names, and the number of the cell; None for what is not a cell."""
    found = _OF_CELL.fullmatch(str(path))
    return (str(path), None) if found is None else (found["path"], int(found["number"]))


def summary(report: Report, *, by_causes: bool = False) -> str:
    """The last lines of the text formats; one that shows findings of one cause together counts the causes as well."""
    count = len(report.diagnostics)
    known = f"{report.known} more in the baseline" if report.known else ""
    if report.nothing and not count:
        return report.nothing
    if not count and not report.fixed and report.complete:
        if report.recorded:
            return f"Recorded {report.known} finding{'' if report.known == 1 else 's'} in the baseline."
        return f"All checks passed!{f' ({known}.)' if known else ''}"
    total = count + report.fixed
    counts = f" ({report.fixed} fixed, {count} remaining)" if report.fixed else ""
    causes = len(by_cause(report.diagnostics)) if by_causes else count
    with_causes = f" with {'one cause' if causes == 1 else f'{causes} causes'}" if causes < count else ""
    problems = f"{total} problem{'' if total == 1 else 's'}"
    found = f"Found {problems}{counts}{with_causes}{f', and {known}' if known else ''}"
    last = f"{found}." if report.complete else f"{found}; there may be more, because not all rules ran to their end."
    return f"{last}{_failing(report)}{_hint(report)}{_many(report)}"


def _failing(report: Report) -> str:
    """How many findings fail the run, if some do not."""
    if report.fail_on is None:
        return ""
    count = sum(GRAVITY[finding.severity] >= GRAVITY[report.fail_on] for finding in report.diagnostics)
    if count == len(report.diagnostics):
        return ""
    those = f"{count or 'None'} of them {'fails' if count < 2 else 'fail'}"
    if len(report.diagnostics) == 1:
        those = "It does not fail"
    return f"\n{those} the run; the lowest severity that does is {report.fail_on} (fail-on)."


def _many(report: Report) -> str:
    """What to do about very many findings of one rule, which often have one reason, such as a setting."""
    counts = Counter(finding.code for finding in report.diagnostics)
    code, count = counts.most_common(1)[0] if counts else ("", 0)
    if count < _MANY:
        return ""
    rule = next((each for each in report.rules if each.code == code), None)
    advice = [rule.many] if rule is not None and rule.many else []
    if not report.counted:
        advice.append("'--statistics' shows numbers only.")
    those = "All" if count == len(report.diagnostics) else f"{count}"
    named = f"{code} {rule.name}" if rule is not None else code
    return f"\n{those} of them are {named}. {' '.join(advice)}" if advice else ""


def _hint(report: Report) -> str:
    """What the options for fixes would do, in ruff's words."""
    able = sum(fixable(finding, unsafe=report.unsafe_fixes) for finding in report.diagnostics)
    hidden = sum(finding.fix is not None for finding in report.diagnostics) - able
    more = f"{hidden} more with '--unsafe-fixes'" if hidden else ""
    if able:
        return f"\n[*] {able} fixable with '--fix'{f' ({more})' if more else ''}."
    return f"\nNo safe fixes; {hidden} with '--fix --unsafe-fixes'." if hidden else ""


def one_line(text: str) -> str:
    """A text without line breaks, for the formats that give each finding a line."""
    return " ".join(text.split())
