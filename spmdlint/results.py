"""The results of the rules, kept for the next run: they are the same if everything they depend on is the same.

That is the linter itself with the installed rules, the Python that runs it, the configuration, and what each file of
the program *means*. The positions of code count only in files in which they were used, so that a comment or a blank
line elsewhere changes nothing. Idle code (`program/idle.py`) counts only once a different file names it; until then, an
additional import, constant or plain function changes nothing. Runs that met a bug are not kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic
from spmdlint.files.signature import Status
from spmdlint.files.store import Store
from spmdlint.installed import digest_of, packages, tool
from spmdlint.plain import PlainFinding, diagnostic, plain
from spmdlint.program.summary import Idle
from spmdlint.program.survey import Survey
from spmdlint.rule import Rule


class Outcome(Struct, frozen=True):
    """The findings of the rules, and notes about how they were found."""

    findings: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()


def settings(config: Config) -> tuple[object, ...]:
    """The settings that findings depend on, besides the rules that run."""
    return (
        config.root,
        config.src,
        config.preview,
        config.jax,
        sorted(config.allowed.items()),
        config.multi_process,
        config.expected_failures,
        config.knowledge,
    )


class Results:
    """The findings of the rules over a program, before anything is suppressed or filtered."""

    def __init__(self, store: Store, config: Config, rules: Sequence[Rule]) -> None:
        self._store = store
        self._rules = rules
        self._extended = bool(config.knowledge)
        self._made_by = (tool(), sorted(rule.code for rule in rules), *settings(config))

    def look_up(self, survey: Survey) -> Outcome | None:
        """The results for a program with the same meaning; None if there are none."""
        name = self._name(survey)
        document = self._store.read(name)
        alike = self._alike(survey) if document is None else None
        if alike is not None:
            document = self._store.read(alike)
        try:
            kept = None if document is None else _decoder.decode(document)
        except msgspec.MsgspecError:
            return None
        if document is None or kept is None or kept.packages != packages(self._rules):
            return None
        lowered = survey.lowered()
        layouts = {path: each.layout for path, each in lowered.items()}
        if any(layouts.get(Path(os.fsdecode(path))) != layout for path, layout in kept.layouts):
            return None
        if alike is not None:
            self._store.write(name, document)
            self._keep_idle(survey, name)
        return Outcome(tuple(map(diagnostic, kept.findings)), tuple(kept.notes))

    def keep(self, survey: Survey, asked: Sequence[Path], outcome: Outcome) -> None:
        """Keep results that depend on the positions of code in the files ``asked``."""
        lowered = survey.lowered()
        layouts = [(os.fsencode(path), lowered[path].layout) for path in asked]
        kept = _Kept(packages(self._rules), layouts, list(map(plain, outcome.findings)), list(outcome.notes))
        name = self._name(survey)
        self._store.write(name, msgspec.msgpack.encode(kept))
        self._keep_idle(survey, name)

    def _name(self, survey: Survey) -> str:
        return "found-" + self._digest(survey, {path: each.meaning for path, each in survey.lowered().items()})

    def _digest(self, survey: Survey, meanings: Mapping[Path, bytes]) -> str:
        program = sorted((str(path), survey.component[path], meaning) for path, meaning in meanings.items())
        return digest_of((*self._made_by, *program))

    # -- programs that differ only in idle code

    def _alike(self, survey: Survey) -> str | None:
        """The name of the results for a program that differs only in idle code that nothing names."""
        document = self._store.read(self._essence(survey))
        try:
            other = None if document is None else _idle_decoder.decode(document)
        except msgspec.MsgspecError:
            return None
        if other is None:
            return None
        before = {(Path(os.fsdecode(path)), each) for path, idle in other.idle for each in idle}
        differing = before ^ {(path, each) for path, idle in survey.idle() for each in idle}
        if self._extended and any(each.module for _, each in differing):
            return None  # the user's own knowledge may depend on what a file imports
        return None if survey.names_any(differing) else other.name

    def _keep_idle(self, survey: Survey, name: str) -> None:
        idle = [(os.fsencode(path), each) for path, each in survey.idle()]
        self._store.write(self._essence(survey), msgspec.msgpack.encode(_WithIdle(name, idle)))

    def _essence(self, survey: Survey) -> str:
        return "alike-" + self._digest(survey, {path: each.essential for path, each in survey.lowered().items()})


class _Kept(Struct, array_like=True):
    packages: list[tuple[str, Status | None]]
    layouts: list[tuple[bytes, bytes]]
    findings: list[PlainFinding]
    notes: list[str]


class _WithIdle(Struct, array_like=True):
    """The name of the last results for a program with this essence, and the program's idle code."""

    name: str
    idle: list[tuple[bytes, tuple[Idle, ...]]]


_decoder = msgspec.msgpack.Decoder(_Kept)
_idle_decoder = msgspec.msgpack.Decoder(_WithIdle)
