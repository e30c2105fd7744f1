"""Runs rules of one's own over the files that findings are asked for, and keeps what they find.

A rule that visits a file depends on the file's text and, if it asks for facts, on the whole program. What it finds is
kept by file: after an edit, rules that ask for nothing visit the edited file alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import libcst as cst
import msgspec
from libcst.metadata import MetadataWrapper
from msgspec import Struct, field

from spmdlint.analysis.answers import Answers
from spmdlint.analysis.nodefacts import FileFacts
from spmdlint.analysis.program import Program
from spmdlint.config import Config
from spmdlint.diagnostics import Diagnostic, Fix, Place, Related
from spmdlint.facts import Facts
from spmdlint.files.read import Source
from spmdlint.files.store import Store
from spmdlint.installed import digest_of, packages, tool
from spmdlint.interpreter import deep
from spmdlint.nodes import facts_of
from spmdlint.plain import PlainFinding, diagnostic, plain
from spmdlint.program.layout import Span
from spmdlint.program.spans import record_spans, span_of
from spmdlint.program.survey import Survey
from spmdlint.replacing import Replacement, replacing
from spmdlint.results import settings
from spmdlint.rule import Rule
from spmdlint.rulefiles import digest_of_sources
from spmdlint.running import Crash
from spmdlint.timings import Timings
from spmdlint.visitor_rule import VisitorRule

_MESSAGE = "Apply the rule's replacement."
_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)


class Visited(Struct):
    """What the rules found, what they failed on, and a sentence for each file that they could not visit."""

    findings: list[Diagnostic] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class NotVisitedError(Exception):
    """A file that LibCST cannot parse, or not exactly; the text is a sentence."""


class Visit:
    """The visit of one file: its tree, the facts about it, and what the rules report."""

    def __init__(self, path: Path, text: str, answers: Callable[[], Answers | None]) -> None:
        try:
            module = cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            raise NotVisitedError(
                f"Rules of your own did not visit {path}: LibCST cannot parse line {error.raw_line}."
            ) from None
        if module.code != text:
            raise NotVisitedError(
                f"Rules of your own did not visit {path}: its line starts are uncertain (it may contain a form feed)."
            )
        self.path = path
        self.module = module
        self.wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.file = FileFacts(path, text, answers)
        self.findings: list[Diagnostic] = []
        self._spans = record_spans(module).spans

    def run(self, rule: Rule) -> None:
        """Let a rule visit the file, with a new object of its class."""
        assert isinstance(rule, VisitorRule)
        made = type(rule)()
        made._visit = self
        self.wrapper.visit(made)

    def facts(self, node: cst.CSTNode) -> Facts:
        """The facts about a node."""
        return facts_of(node, self._spans, self.file)

    def span(self, node: cst.CSTNode) -> Span:
        """The span of a node, without the parentheses around it.

        Raises:
            ValueError: it is not a node of this file.

        """
        return span_of(node, self._spans)

    def report(
        self,
        rule: VisitorRule,
        node: cst.CSTNode,
        message: str,
        help: str,  # noqa: A002  (named like the field of a finding)
        related: tuple[Related, ...],
        replacement: Replacement | None,
        *,
        safe: bool,
    ) -> None:
        """Add a finding."""
        fix = None
        if replacement is not None:
            edits = replacing(self.module, node, replacement)
            fix = Fix("safe" if safe else "unsafe", _MESSAGE, edits) if edits else None
        self.findings.append(rule.finding(message, self._place(node), help, related, fix))

    def _place(self, node: cst.CSTNode) -> Place:
        """Where a finding is shown: of a definition, its name; of a block, its first row."""
        place = self.file.place(self.span(node.name if isinstance(node, _DEFINITIONS) else node))
        if isinstance(node, cst.BaseCompoundStatement) and place.end.row > place.start.row:
            header = self.span(node.body)[0]
            return self.file.place((self.span(node)[0], header))
        return place


def visit_all(
    rules: Sequence[Rule],
    survey: Survey,
    paths: Collection[Path],
    config: Config,
    program: Callable[[], Program],
    store: Store | None,
    timings: Timings,
) -> Visited:
    """The findings of rules in some files of a survey; ``program`` links the project once facts are asked for."""
    found = Visited()
    kept = _Kept(rules, survey, config, store)
    answers = _Once(lambda: _answers(program(), survey.texts))
    for path in sorted(set(paths) & survey.lowered().keys()):
        known = kept.look_up(path)
        if known is not None:
            found.findings += known
            continue
        crashed = len(found.crashes)
        try:
            with timings.phase("parse for rules of your own"), deep():
                visit = Visit(path, survey.texts[path].text, answers)
        except NotVisitedError as error:
            found.notes.append(str(error))
            continue
        for rule in rules:
            with timings.phase(f"{rule.code} {rule.name}"):
                _guarded(rule, visit, found.crashes)
        found.findings += visit.findings
        if len(found.crashes) == crashed:
            kept.keep(path, visit.findings, asked=visit.file.asked)
    kept.write()
    return found


def _guarded(rule: Rule, visit: Visit, crashes: list[Crash]) -> None:
    """Run a rule over a file; if it fails, it loses what it would find later in this file, and nothing else."""
    try:
        with deep():
            visit.run(rule)
    except (Exception, SystemExit) as error:  # a rule must not end the run as if all were well
        crashes.append(Crash(rule, visit.path, error))


def _answers(program: Program, texts: Mapping[Path, Source]) -> Answers:
    with deep():
        return Answers(program.explainer(), program.calls, texts)


class _Once:
    """A value that is made when it is first asked for."""

    def __init__(self, make: Callable[[], Answers]) -> None:
        self._make = make
        self._made: Answers | None = None

    def __call__(self) -> Answers:
        if self._made is None:
            self._made = self._make()
        return self._made


class _Entry(Struct, array_like=True):
    """What was found in a file with this text; ``program`` is a digest of all files, if facts were asked for."""

    text: bytes
    program: str
    findings: list[PlainFinding]


class _Kept:
    """What these rules found in earlier runs, file by file."""

    def __init__(self, rules: Sequence[Rule], survey: Survey, config: Config, store: Store | None) -> None:
        self._survey = survey
        self._store = store
        self._changed = False
        self._entries: dict[bytes, _Entry] = {}
        if store is None:
            return
        codes = [rule.code for rule in rules]
        made_by = (tool(), codes, *settings(config), packages(rules), digest_of_sources(rules))
        self._name = "visited-" + digest_of(made_by)
        document = store.read(self._name)
        try:
            self._entries = {} if document is None else _decoder.decode(document)
        except msgspec.MsgspecError:
            self._entries = {}

    def look_up(self, path: Path) -> list[Diagnostic] | None:
        """The findings in a file, if nothing that they depend on has changed."""
        entry = self._entries.get(os.fsencode(path))
        if entry is None or entry.text != self._survey.facts[path].digest:
            return None
        return list(map(diagnostic, entry.findings)) if entry.program in ("", self._program) else None

    def keep(self, path: Path, findings: Sequence[Diagnostic], *, asked: bool) -> None:
        """Keep the findings in a file."""
        if self._store is not None:
            program = self._program if asked else ""
            entry = _Entry(self._survey.facts[path].digest, program, list(map(plain, findings)))
            self._entries[os.fsencode(path)] = entry
            self._changed = True

    def write(self) -> None:
        """Write what is new."""
        if self._store is not None and self._changed:
            project = {os.fsencode(path) for path in self._survey.facts}
            entries = {path: entry for path, entry in self._entries.items() if path in project}
            self._store.write(self._name, msgspec.msgpack.encode(entries))

    @cached_property
    def _program(self) -> str:
        """A digest of the texts of all files: what is known about one may depend on any."""
        facts = self._survey.facts
        return digest_of((path, facts[path].digest.hex()) for path in sorted(self._survey.lowered()))


_decoder = msgspec.msgpack.Decoder(dict[bytes, _Entry])
