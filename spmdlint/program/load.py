"""From the text of the files to the program: screen, lower, link."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmdlint.analysis.program import Program
from spmdlint.config import Config
from spmdlint.files.nesting import too_deep
from spmdlint.files.read import Source
from spmdlint.files.screen import components, relevant
from spmdlint.knowledge.load import built_in, extended
from spmdlint.program.link import link
from spmdlint.program.lower import LoweringError
from spmdlint.program.summary import Comment, Summary
from spmdlint.program.workers import lower_all


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A file that does not parse, and where; row and column from 1."""

    path: Path
    row: int
    column: int
    message: str


@dataclass(frozen=True)
class Loaded:
    """The program, and what a run needs beside it."""

    program: Program
    syntax_errors: tuple[SyntaxProblem, ...]
    comments: Mapping[Path, tuple[Comment, ...]]


def load(
    sources: Sequence[Source],
    config: Config,
    progress: Callable[[int, int], None] | None = None,
    *,
    screen: bool = True,
    jobs: int | None = None,
) -> Loaded:
    """Lower and link the files; one that does not parse is reported and left out.

    ``screen=False`` lowers every file, which takes longer and finds the same. ``jobs``: processes to lower in, None for
    as many as suit.
    """
    knowledge = extended(built_in(), config.knowledge, config.origins.get("knowledge", "The knowledge"))
    texts = {source.path: source.text for source in sources}
    component = components(texts)
    wanted = relevant(texts, component, knowledge) if screen else set(texts)
    summaries, errors = _lowered(
        {path: text for path, text in texts.items() if path in wanted or not _parses(text)}, jobs, progress
    )
    project = link(summaries, (*config.src, config.root), component)
    comments = {path: summary.comments for path, summary in summaries.items()}
    program = Program(
        project,
        knowledge,
        preview=config.preview,
        jax_version=config.jax_version,
        multi_process=config.multi_process,
        expected_failures=config.expected_failures,
    )
    return Loaded(program, tuple(errors), comments)


def _lowered(
    texts: Mapping[Path, str], jobs: int | None, progress: Callable[[int, int], None] | None
) -> tuple[dict[Path, Summary], list[SyntaxProblem]]:
    """The summaries of those that parse, and what is wrong with the others, both in the order of the files."""
    deep = {path: place for path, text in texts.items() if (place := too_deep(text)) is not None}
    outcomes = lower_all({path: text for path, text in texts.items() if path not in deep}, jobs, progress)
    summaries: dict[Path, Summary] = {}
    errors: list[SyntaxProblem] = []
    for path in texts:
        outcome = outcomes.get(path)
        if isinstance(outcome, Summary):
            summaries[path] = outcome
        elif isinstance(outcome, LoweringError):
            message = f"It does not parse: {outcome.message}."
            errors.append(SyntaxProblem(path, outcome.row, outcome.column, message))
        else:
            message = "It does not parse: too many brackets are nested inside each other here."
            errors.append(SyntaxProblem(path, *deep[path], message))
    return summaries, errors


def _parses(text: str) -> bool:
    """Is it Python of the version that runs: much faster to ask than LibCST. Newer syntax is left to LibCST."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
