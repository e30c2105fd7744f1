"""One run of the linter, from top to bottom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.branch_rule import BranchRule
from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Location, Place, in_order
from spmdlint.errors import UsageError
from spmdlint.files.find import find
from spmdlint.files.read import Source, Unreadable, decode, is_notebook
from spmdlint.files.store import Store
from spmdlint.files.suppressions import Suppressions, collect
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
    from spmdlint.analysis.divergence.branches import Hazard
    from spmdlint.analysis.explanation import Explanation
    from spmdlint.analysis.program import Program


NOTHING_TO_LINT = "There is no Python file and no notebook to lint here; name a different path, or check 'exclude'."


class Stdin(Struct, frozen=True):
    """The text used for the file ``path``, whether that file exists or not."""

    path: Path
    data: bytes


class Checked(Struct, frozen=True):
    """The result of a run: the findings in order, and the data to judge them."""

    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[Path, Source]
    asked: frozenset[Path]
    crashes: tuple[Crash, ...] = ()
    notes: tuple[str, ...] = ()
    ran: frozenset[str] = frozenset()
    """The codes of the rules that ran to their end."""
    unchecked: tuple[str, ...] = ()
    """Sentences about what was to be checked and was not; those that nothing else tells are not among the notes."""
    elsewhere: tuple[Diagnostic, ...] | None = None
    """The other findings of the project, in a run that shows what touches the files asked for; otherwise None."""
    partial: bool = False
    """Only the files near those asked for were looked at: that something was not found means nothing."""


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
    touching: bool = False,
    near: bool = False,
    among: Collection[Path] | None = None,
) -> Checked:
    """Lint the project and return the findings in the files asked for: ``paths``, all absolute, and ``stdin``.

    With ``touching`` also those in other files whose explanation passes through the files asked for, without their
    fixes, which belong to files that nobody asked for.

    The program is always the whole project, so the findings in a file do not depend on how it was passed; unless it is
    to be searched for ``among`` some files only, which nothing is cached of. With ``near``, a large program of which
    nothing is cached is searched among the files near those asked for; that result is cached like that of a project.
    ``edited`` holds texts that replace those on disk for some of the files; one that is not on disk is a new file of
    the project. ``cache`` is the folder for results, None for no cache; results from standard input or ``edited`` are
    never cached. ``jobs``: number of worker processes, None to choose by size. ``timings``: records where the time
    goes.

    Raises:
        UsageError: a path does not exist, or the configuration is invalid.

    """
    given: dict[Path, Source | Unreadable] = {}
    typed = None if stdin is None else stdin.path
    if stdin is not None:
        given[stdin.path] = decode(stdin.path, stdin.data)
    given |= {path: Source(path, text) for path, text in (edited or {}).items()}
    # Texts that are not on disk are linted with the others, but not cached.
    store = None if cache is None else Store(cache, writes=not given)
    with uncollected():
        clock = timings or Timings(samples=False)
        with clock.phase("find"):
            rules = load_rules(config.rules)
            found = find(config, paths, typed=[path for path in given if path == typed or not path.exists()])
        enabled = config.enabled(rules)
        policy = Policy(config, rules)
        notes = (*_without_effect(config, rules), *found.notes)
        if not found.asked:
            return Checked((), {}, found.asked, notes=notes, unchecked=(*notes, NOTHING_TO_LINT))
        active = [rule for rule in rules if rule.code in enabled]
        visitors = [rule for rule in active if rule.by_file]
        # A rule of one's own may find something in any file, whatever it names.
        survey = Surveyor(config, store, clock).look(found.project, given, progress, screen=not visitors, jobs=jobs)
        if among is not None:
            survey, store = replace(survey, wanted=[path for path in survey.wanted if path in among]), None
        program, of_program = survey.wanted, [rule for rule in active if not rule.by_file]
        kept: Outcome | None = None
        if near:
            from spmdlint.nearby import files_near  # which other runs do not need

            kept = Results(store, config, of_program).look_up(survey) if store is not None else None
            around = files_near(survey, found.asked) if kept is None else None
            if around is not None:
                survey = replace(survey, wanted=[path for path in program if path in around])
        partial = survey.wanted is not program and not found.asked.isdisjoint(program)
        if partial:  # what is nowhere in the project may be in the rest of it
            of_program = [rule for rule in of_program if not rule.of_whole]
            enabled = frozenset(rule.code for rule in (*of_program, *visitors))
        crashes: list[Crash] = []
        linked = LinkedLater(survey, config, clock)
        outcome = kept if kept is not None else found_by_rules(linked, of_program, store, crashes, clock, jobs)
        if visitors:
            visited = survey.lowered().keys() if touching else found.asked
            own = found_by_visitors(visitors, linked, visited, store, crashes, clock)
            outcome = Outcome(outcome.findings + own.findings, outcome.notes + own.notes)
        with clock.phase("judge"):
            shown, outdated = _shown(outcome.findings, survey, active, rules, crashes, partial=partial)
            told, elsewhere = _told(policy.applied(shown), found.asked, touching=touching)
        if store is not None:
            store.prune()
    ran = frozenset(enabled - {crash.rule.code for crash in crashes})
    notes = (*notes, *outcome.notes, *imports_outside(config, survey, found.asked))
    if partial:
        notes += (f"{len(survey.wanted)} of {len(program)} files were looked at, the nearest (--near).",)
    unchecked = (*notes, *_unread(survey, found.asked))
    notes = (*notes, *outdated, *config.outdated(rules), *_mistyped(config), *_undefined(config, survey))
    crashed = tuple(crashes)
    return Checked(in_order(told), survey.texts, found.asked, crashed, notes, ran, unchecked, elsewhere, partial)


def imports_outside(config: Config, survey: Survey, asked: Iterable[Path]) -> Iterator[str]:
    """A sentence if nothing marks the project and a file that is asked for imports what lies outside of it."""
    if not config.marked:
        from spmdlint.files.outside import import_outside  # which most runs do not need

        texts = ((path, survey.texts[path].text) for path in sorted(asked) if survey.facts[path].unreadable is None)
        told = import_outside(config.root, texts, survey.facts.keys())
        yield from [] if told is None else [told]


def _unread(survey: Survey, asked: frozenset[Path]) -> Iterator[str]:
    """The files of a project, or the cells, that could not be read; a rule that is off does not tell of them."""
    for path, trouble in survey.troubles():
        if path in asked:
            at = "" if is_notebook(path) else f", line {trouble.row}"
            yield f"{path}{at}: {trouble.message}"


def _told(
    findings: Sequence[Diagnostic], asked: frozenset[Path], *, touching: bool
) -> tuple[list[Diagnostic], tuple[Diagnostic, ...] | None]:
    """The findings that are shown, and the others if they are asked for."""
    told = [finding for finding in findings if finding.place.path in asked]
    if not touching:
        return told, None
    others = [finding for finding in findings if finding.place.path not in asked]
    caused = [each for each in others if any(related.place.path in asked for related in each.related)]
    elsewhere = in_order([each for each in others if each not in caused])
    return [*told, *(replace(each, fix=None) for each in caused)], elsewhere


def _without_effect(config: Config, rules: Sequence[Rule]) -> Iterator[str]:
    for word in config.without_effect(rules):
        yield f"{word} selects only preview rules, which need --preview. Add --preview, or remove the selector."


def _mistyped(config: Config) -> Iterator[str]:
    if config.knowledge.get("aliases"):
        from spmdlint.knowledge.mistyped import mistyped  # which few projects need

        where = config.origins.get("knowledge", "The knowledge")
        for name, home, near in mistyped(config.knowledge):
            yield f"{where}: the alias {name!r} is {home!r}, which means nothing to the linter. Did you mean {near!r}?"


def _undefined(config: Config, survey: Survey) -> Iterator[str]:
    if config.knowledge:
        from spmdlint.knowledge.ownnames import undefined  # which few projects need

        where = config.origins.get("knowledge", "The knowledge")
        for name, home, part, near in undefined(config.knowledge, (*config.src, config.root), survey.texts):
            meant = "" if near is None else f" Did you mean {near!r}?"
            yield f"{where}: {name!r} has no effect, because nothing in {home} is called {part!r}.{meant}"


class LinkedLater:
    """The program, which is linked when it is first needed.

    The analyses are imported then, because that takes half a second, which a run with nothing new does not need.
    """

    def __init__(self, survey: Survey, config: Config, timings: Timings) -> None:
        self.survey = survey
        self.config = config
        self._timings = timings

    @cached_property
    def program(self) -> Program:
        with self._timings.phase("link"):
            from spmdlint.analysis.load import load

            return load(self.survey, self.config, _hazards(self.config))


def _hazards(config: Config) -> tuple[Hazard, ...]:
    """The hazards of divergent branches whose rules run."""
    rules = load_rules(config.rules)
    enabled = config.enabled(rules)
    active = (rule for rule in rules if isinstance(rule, BranchRule) and rule.code in enabled)
    return tuple(hazard for rule in active for hazard in rule.hazards)


def found_by_visitors(
    rules: Sequence[Rule],
    linked: LinkedLater,
    paths: Collection[Path],
    store: Store | None,
    crashes: list[Crash],
    timings: Timings,
) -> Outcome:
    """The findings of the rules that visit files."""
    from spmdlint.visiting import visit_all  # LibCST, which few runs need

    found = visit_all(rules, linked.survey, paths, linked.config, lambda: linked.program, store, timings)
    crashes += found.crashes
    return Outcome(tuple(found.findings), tuple(found.notes))


def found_by_rules(
    linked: LinkedLater,
    rules: Sequence[Rule],
    store: Store | None,
    crashes: list[Crash],
    timings: Timings,
    jobs: int | None,
) -> Outcome:
    """The findings of the rules about the program, or cached ones of a program with the same meaning."""
    survey, config = linked.survey, linked.config
    if not survey.lowered():
        return Outcome(())
    results = None if store is None else Results(store, config, rules)
    with timings.phase("look up"):
        kept = None if results is None else results.look_up(survey)
    if kept is not None:
        return kept
    program = linked.program
    from spmdlint.analysis.sampling import analysed

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
    *,
    partial: bool,
) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """The findings that comments do not suppress and those about the run itself, and notes about the comments."""
    suppressions = suppressions_in(survey, rules)
    remaining = suppressions.remaining(findings)
    problems = tuple(_problem(path, trouble) for path, trouble in survey.troubles())
    # Rules about the run cannot count here: their findings depend on the unused suppressions.
    told = {rule.code for rule in active if not isinstance(rule, RunRule)} - {crash.rule.code for crash in crashes}
    silent = {problem.place.path for problem in problems}
    unused = () if partial else tuple(suppressions.unused(told, rules, silent))
    about = suppressions.remaining(run_about(active, Run(problems, unused), crashes))
    return remaining + about, tuple(suppressions.notes())


def suppressions_in(survey: Survey, rules: Sequence[Rule]) -> Suppressions:
    """The suppressions in the comments of the program."""
    comments = {path: lowered.comments for path, lowered in survey.lowered().items() if lowered.comments}
    return collect(comments, survey.texts, rules)


class Linked:
    """The program of a project, to be asked about its lines."""

    def __init__(self, survey: Survey, config: Config) -> None:
        self.survey = survey
        self.config = config
        self.program = LinkedLater(survey, config, Timings()).program
        self.texts = {path: source.text for path, source in survey.texts.items()}

    def explain(self, path: Path, row: int) -> Explanation:
        """What is known about a line, counted from 1.

        Raises:
            UsageError: the file does not parse, or has no such line.

        """
        for where, trouble in self.survey.troubles():
            if where == path and (trouble.part == "file" or _same_cell(self.texts[path], trouble.row, row)):
                raise UsageError(f"{path}, line {trouble.row}: {trouble.message}")
        lines = len(self.texts[path].splitlines()) if path in self.texts else row
        if not 0 < row <= lines:
            raise UsageError(
                f"{path} has no line {row}; " + (f"its lines are 1 to {lines}." if lines else "it is empty.")
            )
        with deep():
            return self.program.explain(path, row)


def link(
    config: Config, paths: Sequence[Path], *, edited: Mapping[Path, str] | None = None, cache: Path | None = None
) -> Linked:
    """Link the project and the files of ``paths``; the parameters are those of :func:`check`."""
    return Linked(look(config, paths, edited=edited, cache=cache), config)


def look(
    config: Config, paths: Sequence[Path], *, edited: Mapping[Path, str] | None = None, cache: Path | None = None
) -> Survey:
    """Survey the project and the files of ``paths``; the parameters are those of :func:`check`."""
    given = {path: Source(path, text) for path, text in (edited or {}).items()}
    found = find(config, paths, typed=[path for path in given if not path.exists()])
    store = None if cache is None else Store(cache, writes=not given)
    visited = any(rule.by_file for rule in load_rules(config.rules))
    return Surveyor(config, store).look(found.project, given, screen=not visited)


def about_files(config: Config, troubles: Iterable[tuple[Path, Trouble]]) -> list[Diagnostic]:
    """The findings about files that cannot be linted."""
    rules = load_rules(config.rules)
    enabled = config.enabled(rules)
    problems = tuple(_problem(path, trouble) for path, trouble in troubles)
    found = run_about([rule for rule in rules if rule.code in enabled], Run(problems, ()), [])
    return Policy(config, rules).applied(found)


def _same_cell(text: str, row: int, other: int) -> bool:
    """Whether two rows of a notebook are in the same cell."""
    from spmdlint.files.notebooks import Cells

    cells = Cells(text)
    return cells.at(row).number == cells.at(other).number


def _problem(path: Path, trouble: Trouble) -> Problem:
    start = Location(trouble.row, trouble.column)
    return Problem(Place(path, start, Location(trouble.row, trouble.column + 1)), trouble.message, trouble.part)
