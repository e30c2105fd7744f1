"""What the linter knows about one line, and the findings that are on it or point to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.config import Config, override
from spmdlint.diagnostics import Diagnostic, Place, in_order
from spmdlint.engine import (
    Linked,
    LinkedLater,
    found_by_rules,
    found_by_visitors,
    imports_outside,
    look,
    suppressions_in,
)
from spmdlint.files.store import Store
from spmdlint.interpreter import uncollected
from spmdlint.nearby import ROWS, Neighbours
from spmdlint.program.survey import Survey
from spmdlint.results import Results
from spmdlint.rule import Rule, load_rules
from spmdlint.timings import Timings

if TYPE_CHECKING:
    from spmdlint.analysis.explanation import Explanation
    from spmdlint.analysis.program import Program


class Explained(Struct, frozen=True):
    """The facts about one line, and the findings that are on it or point to it.

    ``on_trial`` are the findings that only ``--preview`` shows, each with a sentence that says why, and ``suppressed``
    those that a comment silences.
    """

    explanation: Explanation
    findings: tuple[Diagnostic, ...]
    on_trial: Mapping[Diagnostic, str]
    suppressed: frozenset[Diagnostic]
    program: Program
    texts: Mapping[Path, str]
    notes: tuple[str, ...] = ()


def explain(config: Config, path: Path, row: int, *, cache: Path | None = None, whole: bool = False) -> Explained:
    """What the linter knows about a line, counted from 1, of an absolute path.

    The findings are those of a run with these settings, suppressed ones included, and those that only a run with
    ``--preview`` has, which may show another finding in place of a usual one.

    ``cache`` is the folder of cached results, None to use none. If it has the findings of a large project, the facts
    are told from the files near the line, in a second or two; unless ``whole`` asks for all files.

    Raises:
        UsageError: the path does not exist or does not parse, or has no such line, or the configuration is invalid.

    """
    asked, config = config, override(config, {"preview": True})
    store = None if cache is None else Store(cache)
    with uncollected():
        survey = look(config, [path], cache=cache)
        kept = None if store is None or whole else _kept(asked, survey, store)
        near = [] if kept is None else _near(survey, path, kept)
        if near:
            notes = [_told_from(near, survey)]
            survey, store = replace(survey, wanted=near), None
        else:
            kept, notes = None, []
        linked = Linked(survey, config)
        explanation = linked.explain(path, row)
        row = explanation.row  # of a statement of several lines, the one on which it begins
        found = kept if kept is not None and asked.preview else _found(path, linked, config, store)
        about = in_order(_about(found, path, row))
        stands_for = (place for finding in found for _, place in finding.also)
        hidden = any(place.path == path and place.start.row == row for place in stands_for)
        on_trial: dict[Diagnostic, str] = {}
        if (about or hidden) and not asked.preview:
            others = _found(path, linked, asked, store)
            usual = _about(others, path, row)
            # Files that are not looked at may be what keeps a finding from being a usual one, or from being one at all.
            shown = _spots([*usual, *(kept or ())])
            trial = [finding for finding in about if (finding.code, finding.place) not in shown]
            on_trial = dict(zip(trial, _why_on_trial(trial, linked, path, asked, store), strict=True))
            about = in_order([*usual, *on_trial])
            found = [*found, *others]
        if kept is not None:
            about = in_order([*_about(kept, path, row), *on_trial])
            found = [*found, *kept]
        silent = frozenset(about).difference(suppressions_in(linked.survey, load_rules(config.rules)).remaining(found))
        notes += imports_outside(config, linked.survey, [path])
    return Explained(explanation, about, on_trial, silent, linked.program, linked.texts, tuple(notes))


def _active(config: Config) -> list[Rule]:
    rules = load_rules(config.rules)
    enabled = config.enabled(rules)
    return [rule for rule in rules if rule.code in enabled]


def _kept(config: Config, survey: Survey, store: Store) -> list[Diagnostic] | None:
    """The findings of the whole project, if the last run has left them and no rule of one's own visits files."""
    active = _active(config)
    if any(rule.by_file for rule in active):
        return None
    outcome = Results(store, config, active).look_up(survey)
    return None if outcome is None else list(outcome.findings)


def _near(survey: Survey, path: Path, findings: Iterable[Diagnostic]) -> list[Path]:
    """The files near one, and those that the findings in it lead through; none if the project has few others."""
    told = {
        place.path
        for finding in findings
        for places in [(finding.place, *(each.place for each in finding.related))]
        if any(place.path == path for place in places)
        for place in places
    }
    neighbours = Neighbours(survey)
    near = neighbours.near([path], told, ROWS)
    return near if neighbours.are_few(near) else []


def _told_from(near: Collection[Path], survey: Survey) -> str:
    return (
        f"The facts are told from {len(near)} of {len(survey.wanted)} files, the nearest to the line; --whole-program "
        "asks all, which takes longer. The findings are those of the whole program."
    )


def _about(findings: Iterable[Diagnostic], path: Path, row: int) -> list[Diagnostic]:
    """The findings that are on a line or point to it."""
    return [
        finding
        for finding in findings
        if any(
            place.path == path and place.start.row == row
            for place in (finding.place, *(related.place for related in finding.related))
        )
    ]


def _found(path: Path, linked: Linked, config: Config, store: Store | None) -> list[Diagnostic]:
    """The findings of a program with some settings, kept ones as well, and of rules of one's own in a file."""
    active, timings = _active(config), Timings()
    later = LinkedLater(linked.survey, config, timings)
    if config == linked.config:
        later.program = linked.program
    found = found_by_rules(later, [rule for rule in active if not rule.by_file], store, [], timings, None)
    visitors = [rule for rule in active if rule.by_file]
    own = found_by_visitors(visitors, later, [path], store, [], timings).findings if visitors else ()
    return [*found.findings, *own]


def _spots(findings: Iterable[Diagnostic]) -> set[tuple[str, Place]]:
    return {(finding.code, finding.place) for finding in findings}


def _why_on_trial(
    findings: Sequence[Diagnostic], linked: Linked, path: Path, asked: Config, store: Store | None
) -> Iterator[str]:
    """For each finding that only ``--preview`` shows, why that is."""
    new = {rule.code for rule in load_rules(asked.rules) if rule.preview}
    told: set[tuple[str, Place]] = set()
    if asked.multi_process == "auto" and any(finding.code not in new for finding in findings):
        several = override(asked, {"multi_process": "always"})
        told = _spots(_found(path, linked, several, store))
    for finding in findings:
        if finding.code in new:
            yield f"{finding.code} is a preview rule."
        elif (finding.code, finding.place) in told:
            yield (
                "Nothing says that several processes run this code, which the finding takes. The setting multi-process "
                '= "always" says so, and shows it without --preview.'
            )
        else:
            yield f"This part of {finding.code} is in preview: it is not yet shown to be right on real code."
