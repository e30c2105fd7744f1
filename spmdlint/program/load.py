"""From the text of the files to the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmdlint.analysis.program import Program
from spmdlint.config import Config
from spmdlint.files.nesting import too_deep
from spmdlint.files.read import Source
from spmdlint.knowledge.load import built_in
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


def load(sources: Sequence[Source], config: Config, progress: Callable[[int, int], None] | None = None) -> Loaded:
    """Lower and link the files; one that does not parse is reported and left out."""
    errors: list[SyntaxProblem] = []
    summaries: dict[Path, Summary] = {}
    for done, source in enumerate(sources):
        if progress is not None:
            progress(done, len(sources))
        deep = too_deep(source.text)
        if deep is not None:
            message = "It does not parse: too many brackets are nested inside each other here."
            errors.append(SyntaxProblem(source.path, *deep, message))
            continue
        try:
            summaries[source.path] = lower(source.text)
        except LoweringError as error:
            message = f"It does not parse: {error.message}."
            errors.append(SyntaxProblem(source.path, error.row, error.column, message))
    program = Program(link(summaries, (*config.src, config.root)), built_in())
    return Loaded(program, tuple(errors), {path: summary.comments for path, summary in summaries.items()})
