"""From the text of the files to the program."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst

from spmdlint.analysis.program import Program
from spmdlint.config import Config
from spmdlint.files.comments import Comment
from spmdlint.files.read import Source


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
    config: Config,  # noqa: ARG001
    progress: Callable[[int, int], None] | None = None,
) -> Loaded:
    """Parse the files; one that does not parse is reported and left out."""
    errors: list[SyntaxProblem] = []
    comments: dict[Path, tuple[Comment, ...]] = {}
    for done, source in enumerate(sources):
        if progress is not None:
            progress(done, len(sources))
        try:
            libcst.parse_module(source.text)
        except libcst.ParserSyntaxError as error:
            errors.append(
                SyntaxProblem(source.path, error.raw_line, error.raw_column + 1, f"It does not parse: {error.message}.")
            )
        else:
            found = tuple(_comments(source.text))
            if found:
                comments[source.path] = found
    if progress is not None:
        progress(len(sources), len(sources))
    return Loaded(Program(), tuple(errors), comments)


def _comments(text: str) -> list[Comment]:
    if "spmdlint:" not in text and "noqa" not in text.lower():
        return []
    found: list[Comment] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT and ("spmdlint:" in token.string or "noqa" in token.string.lower()):
                row, column = token.start
                found.append(Comment(row, column + 1, token.string, not token.line[:column].strip()))
    except (tokenize.TokenError, SyntaxError):
        pass  # LibCST reads more than the tokenizer of an old Python does; what was found so far holds.
    return found
