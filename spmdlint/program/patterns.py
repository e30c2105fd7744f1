"""Lowers the patterns of `match`: pure comparisons become comparisons; of others, the compared values are kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from spmdlint.program.expressions import Expressions
from spmdlint.program.layout import Span
from spmdlint.program.summary import Captured, Compare, Const, Display, Item, Unary, ValueId

Place: TypeAlias = tuple[tuple[int, int, bool], ...]
"""The way to a part of a subject: index, number of parts and whether it is the starred one, from the outside in."""
Bound: TypeAlias = tuple[str, Span, Place | None]
_STAR = re.compile(r"\*")
_REST = re.compile(r"\*\*")


def _parts(pattern: ast.MatchSequence, place: Place | None) -> Iterator[tuple[ast.pattern, Place | None]]:
    """The parts of a sequence pattern, and where they look."""
    total = len(pattern.patterns)
    star = next((i for i, part in enumerate(pattern.patterns) if isinstance(part, ast.MatchStar)), total)
    for position, part in enumerate(pattern.patterns):
        step = (position if position <= star else position - total, total, position == star)
        yield part, None if place is None else (*place, step)


class Patterns(Expressions):
    """Examines the pattern of one case."""

    def compared(self, subject: ValueId, pattern: ast.pattern) -> ValueId | None:
        """A pattern that only compares, as a comparison: ``case 0`` as ``subject == 0``, ``case 0 | 1`` as ``in``."""
        span = self.bare(pattern)
        if isinstance(pattern, ast.MatchValue):
            return self.b.emit(Compare(("==",), (subject, self.value(pattern.value))), span)
        if isinstance(pattern, ast.MatchSingleton):
            is_answer = isinstance(self.b.function.operations[subject], Compare)  # which is True or False
            if isinstance(pattern.value, bool) and is_answer:
                return subject if pattern.value else self.b.emit(Unary("not", subject), span)
            return self.b.emit(Compare(("is",), (subject, self.b.emit(Const(pattern.value), span))), span)
        if isinstance(pattern, ast.MatchOr):
            values = [each.value for each in pattern.patterns if isinstance(each, ast.MatchValue)]
            if len(values) == len(pattern.patterns):
                among = self.b.emit(Display("tuple", tuple(map(self.value, values))), span)
                return self.b.emit(Compare(("in",), (subject, among)), span)
        return None

    def pattern(
        self, pattern: ast.pattern, values: list[ValueId], names: list[Bound], place: Place | None = ()
    ) -> bool:
        """Collect the values that a pattern compares with, and the names it binds; True if it is irrefutable.

        ``place`` is where in the subject the pattern looks; None if that is not known.
        """
        if isinstance(pattern, ast.MatchAs):
            if pattern.name is not None:
                names.append((pattern.name, self._at_end(pattern, pattern.name), place))
            return pattern.pattern is None or self.pattern(pattern.pattern, values, names, place)
        inner: Sequence[ast.pattern] = ()
        if isinstance(pattern, ast.MatchValue):
            values.append(self.value(pattern.value))
        elif isinstance(pattern, ast.MatchSingleton):
            values.append(self.b.emit(Const(pattern.value), self.span(pattern)))
        elif isinstance(pattern, ast.MatchClass):
            values.append(self.value(pattern.cls))
            inner = (*pattern.patterns, *pattern.kwd_patterns)
        elif isinstance(pattern, ast.MatchMapping):
            for key, part in zip(pattern.keys, pattern.patterns, strict=True):
                values.append(self.value(key))
                self.pattern(part, values, names, None)
            if pattern.rest is not None:
                names.append((pattern.rest, self._rest(pattern, pattern.rest), None))
        elif isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                names.append((pattern.name, self.behind(_STAR, *self.span(pattern), pattern.name), place))
        elif isinstance(pattern, ast.MatchOr):
            inner = pattern.patterns
        parts = _parts(pattern, place) if isinstance(pattern, ast.MatchSequence) else [(part, None) for part in inner]
        for part, inside in parts:
            self.pattern(part, values, names, inside)
        return False

    def captured(self, subject: ValueId, place: Place | None, span: Span) -> ValueId:
        """What a name in a pattern is bound to."""
        if not place:
            return self.b.emit(Captured(subject), span)
        for index, total, star in place:
            subject = self.b.emit(Item(subject, index, total, star=star), span)
        return subject

    def _at_end(self, node: ast.AST, name: str) -> Span:
        _, end = self.span(node)
        return end - len(name), end

    def _rest(self, pattern: ast.MatchMapping, name: str) -> Span:
        """The position of the name that the rest of a mapping is bound to, which the tree does not give."""
        start, end = self.span(pattern)
        if pattern.patterns:
            _, start = self.span(pattern.patterns[-1])
        return self.behind(_REST, start, end, name)

    def behind(self, introduction: re.Pattern[str], start: int, end: int, name: str) -> Span:
        """The position of a name that the tree does not give, found by the token before it."""
        match = introduction.search(self.positions.text, start, end)
        at = self.positions.after_space(start if match is None else match.end())
        return at, at + len(name)
