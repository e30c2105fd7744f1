"""One run of the linter, from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from spmdlint.config import Config, override
from spmdlint.diagnostics import Diagnostic, Location, Place, in_order
from spmdlint.errors import UsageError
from spmdlint.files.find import find
from spmdlint.files.read import Source, Unreadable, decode
from spmdlint.files.store import Store
from spmdlint.files.suppressions import collect
from spmdlint.interpreter import cores, deep, uncollected
from spmdlint.policy import Policy
from spmdlint.program.survey import Progress, Survey, Surveyor
from spmdlint.program.trouble import Trouble
from spmdlint.results import Outcome, Results
from spmdlint.rule import Problem, Rule, Run, RunRule, load_rules
from spmdlint.running import Crash as Crash
from spmdlint.running import run, run_about
from spmdlint.timings import Timings

if TYPE_CHECKING:
    from spmdlint.analysis.explanation import Explanation
    from spmdlint.analysis.program import Program


class Stdin(Struct, frozen=True):
    """Text that stands for the file ``path``, whether that file exists or not."""

    path: Path
    data: bytes


class Checked(Struct, frozen=True):
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
    timings: Timings | None = None,
) -> Checked:
    """Lint the project and return the findings in the files asked for: ``paths``, all absolute, and ``stdin``.

    The program is always the whole project, so what is said about a file does not depend on how it was asked for.
    ``edited`` holds other texts for some of the files than those that they have on disk.
    ``cache`` is the folder that results are kept in, None to keep none; what standard input or ``edited`` gave never
    is. ``jobs``: processes to work in, None for as many as suit. ``timings``: to be told where the time goes.

    Raises:
        UsageError: a path does not exist, or the configuration is wrong.

    """
    given: dict[Path, Source | Unreadable] = {}
    if stdin is not None:
        given[stdin.path] = decode(stdin.path, stdin.data)
    given |= {path: Source(path, text) for path, text in (edited or {}).items()}
    # What was only typed is not kept, but is linted beside what is.
    store = None if cache is None else Store(cache, writes=not given)
    with uncollected():
        clock = timings or Timings(samples=False)
        with clock.phase("find"):
            rules = load_rules()
            found = find(config, paths, typed=None if stdin is None else stdin.path)
        enabled = config.enabled(rules)
        policy = Policy(config, rules)
        notes = (*_without_effect(config, rules), *found.notes)
        if not found.asked:
            return Checked((), {}, found.asked, notes=notes)
        survey = Surveyor(config, store, clock).look(found.project, given, progress, jobs=jobs)
        crashes: list[Crash] = []
        active = [rule for rule in rules if rule.code in enabled]
        outcome = _outcome(survey, config, active, store, crashes, clock, jobs)
        with clock.phase("judge"):
            shown = _shown(outcome.findings, survey, active, rules, crashes)
            told = policy.applied(finding for finding in shown if finding.place.path in found.asked)
        if store is not None:
            store.prune()
    ran = frozenset(enabled - {crash.rule.code for crash in crashes})
    return Checked(in_order(told), survey.texts, found.asked, tuple(crashes), (*notes, *outcome.notes), ran)


def _without_effect(config: Config, rules: Sequence[Rule]) -> Iterator[str]:
    for word in config.without_effect(rules):
        yield f"{word} selects rules on trial only, and those run with --preview only; add it, or drop the selector."


def _outcome(
    survey: Survey,
    config: Config,
    rules: Sequence[Rule],
    store: Store | None,
    crashes: list[Crash],
    timings: Timings,
    jobs: int | None,
) -> Outcome:
    """What the rules about the program find, or found in one that means the same."""
    if not survey.lowered():
        return Outcome(())
    results = None if store is None else Results(store, config, rules, [rule.code for rule in rules])
    with timings.phase("look up"):
        kept = None if results is None else results.look_up(survey)
    if kept is not None:
        return kept
    # What analyses is imported where it is needed: half of a second that a run with nothing new does not take.
    with timings.phase("link"):
        from spmdlint.analysis.sampling import analysed
        from spmdlint.program.load import load

        program = load(survey, config)
    with timings.sampled(analysed):
        outcome = Outcome(tuple(run(rules, program, crashes, timings, jobs=jobs or cores())), tuple(program.notes))
    if results is not None and not crashes:
        asked = [path for path, module in program.project.modules.items() if module.summary.layout.asked]
        results.keep(survey, asked, outcome)
    return outcome


def _shown(
    findings: Sequence[Diagnostic],
    survey: Survey,
    active: Sequence[Rule],
    rules: Sequence[Rule],
    crashes: list[Crash],
) -> list[Diagnostic]:
    """What is left of the findings when the comments in the texts are heeded, and what there is to say of the run."""
    comments = {path: lowered.comments for path, lowered in survey.lowered().items() if lowered.comments}
    suppressions = collect(comments, survey.texts, rules)
    remaining = suppressions.remaining(findings)
    problems = tuple(_problem(path, trouble) for path, trouble in survey.troubles())
    # What a rule about the run finds cannot count here: it is not known before the unused suppressions are.
    told = {rule.code for rule in active if not isinstance(rule, RunRule)} - {crash.rule.code for crash in crashes}
    unused = tuple(suppressions.unused(told, rules, {problem.place.path for problem in problems}))
    return remaining + suppressions.remaining(run_about(active, Run(problems, unused), crashes))


class Explained(Struct, frozen=True):
    """What is known of one line, and the findings that stand on it or point to it.

    ``on_trial`` are those that the configuration does not ask for, and a preview shows.
    """

    explanation: Explanation
    findings: tuple[Diagnostic, ...]
    on_trial: frozenset[Diagnostic]
    program: Program
    texts: Mapping[Path, str]


def explain(config: Config, path: Path, row: int, *, cache: Path | None = None) -> Explained:
    """What the linter knows of a line, counted from 1, of an absolute path.

    Suppressed findings are told, and those on trial, too.

    ``cache`` is the folder that other runs have kept things in, None to use none.

    Raises:
        UsageError: the path does not exist or does not parse, or has no such line, or the configuration is wrong.

    """
    from spmdlint.program.load import load

    asked, config = config, override(config, {"preview": True})
    with uncollected():
        found = find(config, [path])
        survey = Surveyor(config, None if cache is None else Store(cache)).look(found.project, {})
        for where, trouble in survey.troubles():
            if where == path:
                raise UsageError(f"{path}, line {trouble.row}: {trouble.message}")
        texts = {path: source.text for path, source in survey.texts.items()}
        lines = len(texts[path].splitlines()) if path in texts else row
        if not 0 < row <= lines:
            raise UsageError(f"{path} has no line {row}; its lines are 1 to {lines}.")
        program = load(survey, config)
        with deep():
            explanation = program.explain(path, row)
        about = in_order(_about(path, row, program, config))
        usual = about if asked.preview or not about else _about(path, row, load(survey, asked), asked)
    return Explained(explanation, about, frozenset(about) - frozenset(usual), program, texts)


def _about(path: Path, row: int, program: Program, config: Config) -> list[Diagnostic]:
    """The findings of a program that stand on a line or point to it."""
    rules = load_rules()
    enabled = config.enabled(rules)
    findings = run([rule for rule in rules if rule.code in enabled], program, [], Timings())
    return [finding for finding in findings if _speaks_of(finding, path, row)]


def _speaks_of(finding: Diagnostic, path: Path, row: int) -> bool:
    places = (finding.place, *(related.place for related in finding.related))
    return any(place.path == path and place.start.row == row for place in places)


def _problem(path: Path, trouble: Trouble) -> Problem:
    start = Location(trouble.row, trouble.column)
    return Problem(Place(path, start, Location(trouble.row, trouble.column + 1)), trouble.message)
