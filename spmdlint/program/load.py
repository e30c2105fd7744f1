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
from spmdlint.program.lower import LoweringError, lower
from spmdlint.program.summary import Comment, Summary


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
) -> Loaded:
    """Lower and link the files; one that does not parse is reported and left out.

    ``screen=False`` lowers every file, which takes longer and finds the same.
    """
    knowledge = extended(built_in(), config.knowledge, config.origins.get("knowledge", "The knowledge"))
    texts = {source.path: source.text for source in sources}
    component = components(texts)
    wanted = relevant(texts, component, knowledge) if screen else set(texts)
    errors: list[SyntaxProblem] = []
    summaries: dict[Path, Summary] = {}
    for done, (path, text) in enumerate(texts.items()):
        if progress is not None:
            progress(done, len(texts))
        if path not in wanted and _parses(text):
            continue
        deep = too_deep(text)
        if deep is not None:
            message = "It does not parse: too many brackets are nested inside each other here."
            errors.append(SyntaxProblem(path, *deep, message))
            continue
        try:
            summaries[path] = lower(text)
        except LoweringError as error:
            message = f"It does not parse: {error.message}."
            errors.append(SyntaxProblem(path, error.row, error.column, message))
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


def _parses(text: str) -> bool:
    """Is it Python of the version that runs: much faster to ask than LibCST. Newer syntax is left to LibCST."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
