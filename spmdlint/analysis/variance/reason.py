"""Why a value has a property: a chain of steps from its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Site
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

PARTS = ("data", "ragged", "longest")
"""Kinds of data that only this process has, however it got it."""


_PRECEDENCE = ("group", "identity", "data", "ragged", "entropy", "hash", "clock", "stamp", "host")
"""The kinds of sources, the surest first; all others come after them, and what is guessed from a name last.

Whoever is in no group may leave out what the group does, also if something else tells the processes apart too.
"""


def surest(reasons: Iterable[Reason | None]) -> Reason | None:
    """All reasons for one property as one, in whatever order the program names them: of each kind the first.

    The most certain kind comes first, the others are those beside it.
    """
    best: Reason | None = None
    for reason in reasons:
        if best is None:
            best = reason
        elif reason is not None and reason is not best:
            best = _joined(best, reason)
    return best


def first(found: Reason | None, counts: Callable[[Reason], bool]) -> Reason | None:
    """Of all reasons that are one the first that counts."""
    return next(filter(counts, found.each()), None) if found is not None else None


def of_kind(found: Reason | None, *kinds: str) -> Reason | None:
    """Of all reasons that are one the first of some kinds."""
    return first(found, lambda each: each.kind in kinds)


def _joined(first: Reason, second: Reason) -> Reason:
    """Two reasons as one."""
    of_kind = {each.kind: each for each in (*second.each(), *first.each())}
    if len(of_kind) == len(first.beside) + 1 and _rank(first) <= min(map(_rank, of_kind.values())):
        return first
    best, *beside = sorted(of_kind.values(), key=lambda each: (_rank(each), each.kind))
    return replace(best, beside=tuple(beside))


def _rank(reason: Reason) -> int:
    if reason.kind in _PRECEDENCE:
        return _PRECEDENCE.index(reason.kind)
    return len(_PRECEDENCE) + (reason.kind == "named")


Through: TypeAlias = Literal["choice", "draw", "shuffle"]
Crossing: TypeAlias = tuple[Literal["enters", "leaves", "keeps"], FunctionRef, str]


class Reason(Struct, frozen=True):
    """Why a value has a property: the step at a site, and the reason before it. ``kind`` is that of the source.

    ``through``: what leads from the reason before to this one, if the value is not computed from that: a branch chose
    it, a generator with such a seed drew it, or a shuffle with such a generator put it into an order. ``crosses``: it
    enters a function by this call for a parameter, or leaves one, or a function keeps it in a field for others.
    """

    site: Site
    text: str
    kind: str
    before: Reason | None = None
    through: Through | None = None
    crosses: Crossing | None = None
    beside: tuple[Reason, ...] = ()
    """The reasons of other kinds, one of each: no kind hides another."""

    def then(self, site: Site, text: str, through: Through | None = None, crosses: Crossing | None = None) -> Reason:
        """The same with one more step."""
        beside = tuple([each.then(site, text, through, crosses) for each in self.beside])
        return Reason(site, text, self.kind, self, through, crosses, beside)

    def each(self) -> Iterator[Reason]:
        """The reason and those beside it, each alone."""
        yield replace(self, beside=()) if self.beside else self
        yield from self.beside

    def chain(self) -> list[Reason]:
        """The steps from the source to this one."""
        found: list[Reason] = []
        step: Reason | None = self
        while step is not None:
            found.append(step)
            step = step.before
        return found[::-1]

    def passes(self, through: str) -> bool:
        """Whether a step was made in a certain way."""
        return any(step.through == through for step in self.chain())

    @property
    def source(self) -> Reason:
        return self.chain()[0]

    @property
    def cause(self) -> Reason:
        """The source, or the step that made data of a differing size from it, such as a share by process index."""
        if self.kind not in PARTS:
            return self.source
        return next(step for step in self.chain() if step.kind == self.kind)


def field_stores(ev: Evaluator, reason: Reason) -> Iterator[tuple[Site, s.StoreAttribute]]:
    """The steps of a reason, from the source on, at which a value is stored in a field."""
    for step in reason.chain():
        operation = ev.code(step.site.ref).operations[step.site.number]
        if isinstance(operation, s.StoreAttribute):
            yield step.site, operation
