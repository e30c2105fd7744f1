"""One run of the linter, from top to bottom."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Location, Place, in_order
from spmdlint.errors import AnalysisError, UsageError
from spmdlint.files.find import Found, find
from spmdlint.files.read import Source, Unreadable, decode, read_all
from spmdlint.files.suppressions import collect
from spmdlint.interpreter import deep, uncollected
from spmdlint.policy import Policy
from spmdlint.results import Findings, Results
from spmdlint.rule import Problem, Rule, Run, RunRule, load_rules

if TYPE_CHECKING:
    from spmdlint.analysis.explanation import Explanation
    from spmdlint.analysis.program import Program
    from spmdlint.program.load import SyntaxProblem

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Stdin:
    """Text that stands for the file ``path``, whether that file exists or not."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class Crash:
    """A rule that failed: a bug of the rule, or of an analysis that it asked."""

    rule: Rule
    path: Path | None
    error: Exception

    def sentence(self) -> str:
        """What happened, for the user."""
        where = f" in {self.path}" if self.path else ""
        return (
            f"The rule {self.rule.code} ({self.rule.name}) failed{where} and its findings are incomplete: "
            f"{type(self.error).__name__}: {self.error}. This is a bug; --verbose shows the traceback."
        )

    def trace(self) -> str:
        """The traceback."""
        return "".join(traceback.format_exception(self.error))


@dataclass(frozen=True)
class Checked:
    """What a run found: the findings in order, and what a reader needs to judge them."""

    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[Path, Source]
    asked: frozenset[Path]
    crashes: tuple[Crash, ...] = ()
    notes: tuple[str, ...] = ()
    ran: frozenset[str] = frozenset()
    """The codes of the rules that ran to their end."""


def check(
    config: Config,
    paths: Sequence[Path],
    *,
    stdin: Stdin | None = None,
    progress: Progress | None = None,
    edited: Mapping[Path, str] | None = None,
    cache: Path | None = None,
    jobs: int | None = None,
) -> Checked:
    """Lint the project and return the findings in the files asked for: ``paths``, all absolute, and ``stdin``.

    The program is always the whole project, so what is said about a file does not depend on how it was asked for.
    ``edited`` holds other texts for some of the files than those that they have on disk.
    ``cache`` is the folder that results are kept in, None to keep none; what standard input or ``edited`` gave never
    is. ``jobs``: processes to work in, None for as many as suit.

    Raises:
        UsageError: a path does not exist, or the configuration is wrong.

    """
    with uncollected():
        kept = cache if stdin is None and edited is None else None
        return _check(config, paths, stdin, progress, edited or {}, kept, jobs)


def _check(
    config: Config,
    paths: Sequence[Path],
    stdin: Stdin | None,
    progress: Progress | None,
    edited: Mapping[Path, str],
    cache: Path | None,
    jobs: int | None,
) -> Checked:
    rules = load_rules()
    enabled = config.enabled(rules)
    policy = Policy(config, rules)
    trial = tuple(
        f"{selector} selects rules on trial only, and those run with --preview only; add it, or drop the selector."
        for selector in config.without_effect(rules)
    )
    found = find(config, paths, typed=None if stdin is None else stdin.path)
    if not found.asked:
        return Checked((), {}, found.asked, notes=(*trial, *found.notes))
    results = Results(cache, config, found) if cache is not None else None
    kept = results.look_up() if results is not None else None
    if kept is not None:
        return Checked(kept.diagnostics, kept.sources, found.asked, notes=kept.notes, ran=frozenset(enabled))
    sources, failures = _read(found, stdin)
    sources = [replace(source, text=edited.get(source.path, source.text)) for source in sources]
    # What analyses is imported where it is needed: half of a second that a run with nothing new does not take.
    from spmdlint.program.load import load

    loaded = load(sources, config, progress, jobs=jobs)
    by_path = {source.path: source for source in sources}
    suppressions = collect(loaded.comments, by_path, rules)

    active = [rule for rule in rules if rule.code in enabled]
    crashes: list[Crash] = []
    findings = _run(active, loaded.program, crashes)
    remaining = suppressions.remaining(findings)

    problems = (*map(_problem, failures), *map(_problem, loaded.syntax_errors))
    # What a rule about the run finds cannot count here: it is not known before the unused suppressions are.
    told = {rule.code for rule in active if not isinstance(rule, RunRule)} - {crash.rule.code for crash in crashes}
    unused = tuple(suppressions.unused(told, rules, {problem.place.path for problem in problems}))
    about_the_run = _run_about(active, Run(problems, unused), crashes)
    remaining += suppressions.remaining(about_the_run)

    shown = in_order(policy.applied(finding for finding in remaining if finding.place.path in found.asked))
    ran = frozenset(enabled - {crash.rule.code for crash in crashes})
    notes = (*trial, *found.notes)
    if results is not None and not crashes:
        results.keep(Findings(shown, notes, by_path), rules)
    return Checked(shown, by_path, found.asked, tuple(crashes), notes, ran)


@dataclass(frozen=True)
class Explained:
    """What is known of one line, and the findings that stand on it or point to it."""

    explanation: Explanation
    findings: tuple[Diagnostic, ...]
    program: Program
    texts: Mapping[Path, str]


def explain(config: Config, path: Path, row: int) -> Explained:
    """What the linter knows of a line, counted from 1, of an absolute path; suppressed findings are told, too.

    Raises:
        UsageError: the path does not exist or does not parse, or the configuration is wrong.

    """
    from spmdlint.program.load import load

    with uncollected():
        found = find(config, [path])
        sources, failures = _read(found, None)
        loaded = load(sources, config)
        for problem in (*map(_problem, failures), *map(_problem, loaded.syntax_errors)):
            if problem.place.path == path:
                raise UsageError(f"{path}, line {problem.place.start.row}: {problem.message}")
        rules = load_rules()
        enabled = config.enabled(rules)
        crashes: list[Crash] = []
        findings = _run([rule for rule in rules if rule.code in enabled], loaded.program, crashes)
        with deep():
            explanation = loaded.program.explain(path, row)
    about = in_order([finding for finding in findings if _speaks_of(finding, path, row)])
    return Explained(explanation, about, loaded.program, {source.path: source.text for source in sources})


def _speaks_of(finding: Diagnostic, path: Path, row: int) -> bool:
    places = (finding.place, *(related.place for related in finding.related))
    return any(place.path == path and place.start.row == row for place in places)


def _read(found: Found, stdin: Stdin | None) -> tuple[list[Source], list[Unreadable]]:
    if stdin is None:
        return read_all(found.project)
    sources, failures = read_all([path for path in found.project if path != stdin.path])
    typed = decode(stdin.path, stdin.data)
    if isinstance(typed, Source):
        sources.append(typed)
    else:
        failures.append(typed)
    return sources, failures


def _run(rules: Collection[Rule], program: Program, crashes: list[Crash]) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    for rule in rules:
        findings += _guarded(rule, rule.check(program), crashes)
    return findings


def _run_about(rules: Collection[Rule], run: Run, crashes: list[Crash]) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    for rule in rules:
        if isinstance(rule, RunRule):
            findings += _guarded(rule, rule.check_run(run), crashes)
    return findings


def _guarded(rule: Rule, findings: Iterator[Diagnostic], crashes: list[Crash]) -> Iterator[Diagnostic]:
    """The findings of one rule up to where it fails: a bug in one rule must not lose what the others found."""
    try:
        with deep():
            yield from findings
    except Exception as error:
        crashes.append(Crash(rule, error.path if isinstance(error, AnalysisError) else None, error))


def _problem(outcome: Unreadable | SyntaxProblem) -> Problem:
    start = Location(outcome.row, outcome.column)
    return Problem(Place(outcome.path, start, Location(outcome.row, outcome.column + 1)), outcome.message)
