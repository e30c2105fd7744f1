"""Why a value has a property: a chain of steps from its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Site
from spmdlint.program import summary as s

PARTS = ("data", "ragged", "longest")
"""Kinds of data that only this process has, however it got it."""


_PRECEDENCE = ("identity", "group", "data", "ragged", "named", "entropy", "hash", "clock", "stamp", "host")
"""The kinds of sources, the surest first; all others come after them."""


def surest(reasons: Iterable[Reason | None]) -> Reason | None:
    """Of several reasons for one property the one that is most certain, in whatever order the program names them."""
    best: Reason | None = None
    for reason in reasons:
        if reason is not None and (best is None or _rank(reason) < _rank(best)):
            best = reason
            if _rank(best) == 0:
                break
    return best


def _rank(reason: Reason) -> int:
    return _PRECEDENCE.index(reason.kind) if reason.kind in _PRECEDENCE else len(_PRECEDENCE)


class Reason(Struct, frozen=True):
    """Why a value has a property: the step at a site, and the reason before it. ``kind`` is that of the source.

    ``through``: what leads from the reason before to this one, if the value is not computed from that: a branch chose
    it, a generator with such a seed drew it, or a shuffle with such a generator put it into an order.
    """

    site: Site
    text: str
    kind: str
    before: Reason | None = None
    through: Literal["choice", "draw", "shuffle"] | None = None

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
