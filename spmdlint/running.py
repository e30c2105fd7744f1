"""Runs the rules: each is guarded, and those over a large program are split between two processes."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from spmdlint.copied import Copy, may_be_copied
from spmdlint.diagnostics import Diagnostic
from spmdlint.errors import AnalysisError
from spmdlint.interpreter import deep
from spmdlint.plain import PlainFinding, diagnostic, plain
from spmdlint.program.testfiles import is_test
from spmdlint.rule import Rule, Run, RunRule
from spmdlint.timings import Timings

if TYPE_CHECKING:
    from spmdlint.analysis.program import Program

LEAST = 4_000
"""The number of call contexts in a program for which a second process is worth its start."""
_SECOND = ("SPMD3", "SPMD5")
"""The rules of the second process.

They take about half the time and need much of the same: what differs between processes, which calls are parallel, and
how values vary over the axes of a mesh.
"""


class Crash(Struct, frozen=True):
    """A rule that failed: a bug in the rule, or in an analysis that it used."""

    rule: Rule
    path: Path | None
    error: BaseException

    def sentence(self) -> str:
        """What happened, for the user."""
        where = f" in {self.path}" if self.path else ""
        own = f" ({self._own_line()})" if self.rule.by_file else ""
        whose = " in the rule" if own and not self._in_analysis() else ""
        return (
            f"The rule {self.rule.code} ({self.rule.name}) failed{where} and its findings are incomplete: "
            f"{type(self.error).__name__}: {self.error}{own}. This is a bug{whose}; --verbose shows the traceback."
        )

    def _own_line(self) -> str:
        """The last line of the rule's own file that led to the failure."""
        file = getattr(sys.modules.get(type(self.rule).__module__), "__file__", None)
        rows = [row for name, row in self._lines() if name == file]
        return f"line {rows[-1]} of {file}" if rows else f"in {type(self.rule).__qualname__}"

    def _in_analysis(self) -> bool:
        """Whether an analysis failed that the rule asked."""
        return Path(__file__).parent / "analysis" in Path(self._lines()[-1][0]).parents

    def _lines(self) -> list[tuple[str, int | None]]:
        import traceback

        return [(frame.filename, frame.lineno) for frame in traceback.extract_tb(self.error.__traceback__)]

    def trace(self) -> str:
        """The traceback."""
        import traceback

        return "".join(traceback.format_exception(self.error))


def run(
    rules: Sequence[Rule], program: Program, crashes: list[Crash], timings: Timings, *, jobs: int = 1
) -> list[Diagnostic]:
    """The findings of the rules over a program, in up to ``jobs`` processes."""
    second = [rule for rule in rules if rule.code.startswith(_SECOND)] if jobs > 1 and may_be_copied() else []
    if not second or len(second) == len(rules) or not _is_large(program, timings):
        return _run_here(rules, program, crashes, timings)
    try:
        copy = Copy(lambda: _run_there(second, program))
    except OSError:
        return _run_here(rules, program, crashes, timings)
    with copy:
        findings = _run_here([rule for rule in rules if rule not in second], program, crashes, timings)
        answer = copy.result()
    try:
        found = None if answer is None else msgspec.msgpack.decode(answer, type=list[PlainFinding])
    except msgspec.MsgspecError:
        found = None
    if found is None:  # whatever happened to the copy, running the rules here reports it
        return findings + _run_here(second, program, crashes, timings)
    return findings + list(map(diagnostic, found))


def run_about(rules: Collection[Rule], about: Run, crashes: list[Crash]) -> list[Diagnostic]:
    """The findings of the rules over a run."""
    findings: list[Diagnostic] = []
    for rule in rules:
        if isinstance(rule, RunRule):
            findings += _guarded(rule, rule.check_run(about), crashes)
    return findings


def _is_large(program: Program, timings: Timings) -> bool:
    """Whether a second process is worth it. If so, this finds out what both need: calls, and which are parallel."""
    try:
        with timings.phase("call graph"), deep():
            if len(program.reach.frames) < LEAST:
                return False
        with timings.phase("parallel calls"), deep():
            program.effects.is_silent(program.reach.frames[0])
            return True
    except Exception:
        return False


def _run_here(rules: Sequence[Rule], program: Program, crashes: list[Crash], timings: Timings) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    for rule in rules:
        # An analysis that several rules need is counted with the first of them.
        with timings.phase(f"{rule.code} {rule.name}"):
            found = _guarded(rule, rule.check(program), crashes)
            findings += (each for each in found if not _is_of_tests(each, program))
    return findings


def _is_of_tests(finding: Diagnostic, program: Program) -> bool:
    """Whether it is by a test that other code goes wrong: a test sets up its processes, and their files, by itself.

    What goes wrong with axes and specs does so for whoever calls it like this.
    """
    root = program.project.roots[-1]
    if finding.code.startswith("SPMD1"):
        return False
    led = any(is_test(related.place.path, root) for related in finding.related)
    return led and not is_test(finding.place.path, root)


def _run_there(rules: Sequence[Rule], program: Program) -> bytes:
    crashes: list[Crash] = []
    findings = _run_here(rules, program, crashes, Timings(samples=False))
    if crashes:
        raise crashes[0].error
    return msgspec.msgpack.encode(list(map(plain, findings)))


def _guarded(rule: Rule, findings: Iterator[Diagnostic], crashes: list[Crash]) -> Iterator[Diagnostic]:
    """The findings of one rule up to its failure: a bug in one rule must not lose what the others found."""
    try:
        with deep():
            yield from findings
    except Exception as error:
        crashes.append(Crash(rule, error.path if isinstance(error, AnalysisError) else None, error))
