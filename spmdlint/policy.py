"""Applies the configuration to findings: the files in which a rule is off, and the severity of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from spmdlint import selection
from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Severity
from spmdlint.files.ignore import Patterns, configured_patterns
from spmdlint.rule import Rule

GRAVITY: Mapping[Severity, int] = {"info": 0, "warning": 1, "error": 2}


class Policy:
    """The settings ``per-file-ignores`` and ``severity``, for the rules that are installed.

    Raises:
        UsageError: a selector does not name a rule, or a pattern is invalid.

    """

    def __init__(self, config: Config, rules: Sequence[Rule]) -> None:
        where = config.origins.get("per_file_ignores", "The option per-file-ignores")
        self._files: list[tuple[Patterns, frozenset[str]]] = []
        for pattern, selectors in config.per_file_ignores.items():
            selection.refuse_unknown(selectors, rules, where)
            codes = frozenset(code for selector in selectors for code in selection.matches(selector, rules))
            self._files.append((configured_patterns(config.root, [pattern], where), codes))
        selection.refuse_unknown(config.severity, rules, config.origins.get("severity", "The option severity"))
        self._severities: dict[str, Severity] = {}
        for selector in sorted(config.severity, key=lambda each: selection.specificity(each, rules)):
            self._severities.update(dict.fromkeys(selection.matches(selector, rules), config.severity[selector]))

    def applied(self, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """The findings that are shown, with their configured severity."""
        return [self._graded(finding) for finding in findings if not self._ignored(finding.place.path, finding.code)]

    def _graded(self, finding: Diagnostic) -> Diagnostic:
        severity = self._severities.get(finding.code, finding.severity)
        return finding if severity == finding.severity else replace(finding, severity=severity)

    def _ignored(self, path: Path, code: str) -> bool:
        return any(code in codes and _named(patterns, path) for patterns, codes in self._files)


def _named(patterns: Patterns, path: Path) -> bool:
    """Whether the patterns match a file, or a folder above it."""
    return any(patterns.verdict(each, is_folder=each != path) for each in _up_to(path, patterns.folder))


def _up_to(path: Path, root: Path) -> Iterator[Path]:
    yield path
    yield from (parent for parent in path.parents if root in parent.parents)
