"""What the linter reports: findings, the places they point to, and the edits that fix them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from spmdlint.changes import Change

Severity = Literal["error", "warning", "info"]
Applicability = Literal["safe", "unsafe"]


class Location(Struct, frozen=True, order=True):
    """A position in a file: 1-based row and column; columns are counted in characters."""

    row: int
    column: int


class Place(Struct, frozen=True, order=True):
    """A span in a file, from ``start`` up to but not including ``end``; ``path`` is absolute."""

    path: Path
    start: Location
    end: Location


class Related(Struct, frozen=True):
    """Another place that the reader needs to see, and one sentence that says why."""

    place: Place
    message: str


class Edit(Struct, frozen=True):
    """Replace the text from ``start`` up to but not including ``end`` with ``content``."""

    start: Location
    end: Location
    content: str


class Fix(Struct, frozen=True):
    """An automatic fix: a *safe* one keeps the program's meaning, an *unsafe* one needs review.

    It is a set of edits or, if more than a token changes, a ``change`` of the syntax tree, of which the edits are made
    when they are needed.
    """

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...] = ()
    change: Change | None = None


class Diagnostic(Struct, frozen=True):
    """One finding: ``message`` says what is wrong, ``help`` how to fix it."""

    code: str
    name: str
    severity: Severity
    message: str
    place: Place
    help: str = ""
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    cause: tuple[Place, ...] = ()
    """What to mend, if findings at other places go away with it: a source, and the calls that hand its value on."""
    also: tuple[tuple[str, Place], ...] = ()
    """The codes of other findings that this one stands for, and where they would be."""
    through: str = ""
    """The function that is called at the place: others may be called there, each of which is a finding of its own."""

    def sort_key(self) -> tuple[Place, str, str]:
        """The order of output: by file and position, then by code."""
        return (self.place, self.code, self.message)


def fixable(finding: Diagnostic, *, unsafe: bool) -> bool:
    """Whether ``--fix`` would apply the fix of a finding."""
    return finding.fix is not None and (unsafe or finding.fix.applicability == "safe")


def in_order(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics without exact duplicates, in the order of output."""
    return tuple(sorted(set(diagnostics), key=Diagnostic.sort_key))


def by_cause(diagnostics: Iterable[Diagnostic]) -> list[tuple[Diagnostic, ...]]:
    """The diagnostics in groups, in the order of the first of each: those of a group have one cause."""
    groups: dict[object, list[Diagnostic]] = {}
    for number, finding in enumerate(diagnostics):
        groups.setdefault(finding.cause or number, []).append(finding)
    return [tuple(group) for group in groups.values()]


def sentence(text: str) -> str:
    """Turn a clause into a sentence. Code at its start, as in ``jax.jit is ...``, keeps its case."""
    first = text.split(" ", 1)[0]
    start = text[:1] if any(sign in first for sign in "._()`") else text[:1].upper()
    return f"{start}{text[1:]}."
