"""What every format is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spmdlint.diagnostics import Diagnostic, Severity
from spmdlint.files.read import Source


@dataclass(frozen=True, slots=True)
class Description:
    """What formats that declare their rules tell of one; ``page`` is Markdown."""

    code: str
    name: str
    severity: Severity
    summary: str
    page: str
    preview: bool = False
    url: str | None = None


@dataclass(frozen=True)
class Report:
    """The findings of a run, in order, and what is needed to show them."""

    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[Path, Source] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    """Where the page of a rule stands, by code, for the rules that have one on the web."""
    base: Path = field(default_factory=Path.cwd)
    """The folder that shown paths are relative to."""
    top: Path = field(default_factory=Path.cwd)
    """The root of the work tree: the paths that servers read are relative to it, wherever the linter runs."""
    rules: tuple[Description, ...] = ()
    color: bool = False
    complete: bool = True
    """Whether all rules ran to their end."""

    def shown(self, path: Path) -> str:
        """A path as a person reads it: relative where it lies below the base."""
        try:
            return str(path.relative_to(self.base))
        except ValueError:
            return str(path)


def summary(report: Report) -> str:
    """The last line of the formats for people."""
    count = len(report.diagnostics)
    if not count and report.complete:
        return "All checks passed!"
    found = f"Found {count} problem{'' if count == 1 else 's'}"
    return f"{found}." if report.complete else f"{found}; there may be more, because not all rules ran to their end."


def one_line(text: str) -> str:
    """A text without line breaks, for the formats that give each finding a line."""
    return " ".join(text.split())
