"""What the linter says: findings, the places they point to, and the edits that would mend them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]
Applicability = Literal["safe", "unsafe"]


class Location(Struct, frozen=True, order=True):
    """A position in a file: row and column from 1, columns counted in characters."""

    row: int
    column: int


class Place(Struct, frozen=True, order=True):
    """A span in a file, from ``start`` up to and without ``end``; ``path`` is absolute."""

    path: Path
    start: Location
    end: Location


class Related(Struct, frozen=True):
    """A second place that a reader needs to see, and one sentence on why."""

    place: Place
    message: str


class Edit(Struct, frozen=True):
    """Replace what stands from ``start`` up to and without ``end`` by ``content``."""

    start: Location
    end: Location
    content: str


class Fix(Struct, frozen=True):
    """A mechanical way out: *safe* keeps the program's meaning, *unsafe* needs a reader's eye."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


class Diagnostic(Struct, frozen=True):
    """One finding: ``message`` says what is wrong, ``help`` the way out."""

    code: str
    name: str
    severity: Severity
    message: str
    place: Place
    help: str = ""
    related: tuple[Related, ...] = ()
    fix: Fix | None = None

    def sort_key(self) -> tuple[Place, str, str]:
        """Order of output: by file and place, then by code."""
        return (self.place, self.code, self.message)


def fixable(finding: Diagnostic, *, unsafe: bool) -> bool:
    """Whether ``--fix`` would put in the fix of a finding."""
    return finding.fix is not None and (unsafe or finding.fix.applicability == "safe")


def in_order(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics without exact repetitions, in the order of output."""
    return tuple(sorted(set(diagnostics), key=Diagnostic.sort_key))


def sentence(text: str) -> str:
    """A clause as a sentence. Code at its start, as in ``jax.jit is ...``, keeps its spelling."""
    first = text.split(" ", 1)[0]
    start = text[:1] if any(sign in first for sign in "._()`") else text[:1].upper()
    return f"{start}{text[1:]}."
