"""Stratum 5: parallel calls that only some processes make, or that they make in different orders.

For each condition that has a cause, the whole function is looked at twice: as a process sees it for which the
condition holds, and as one sees it for which it does not. A condition about the number of the process alone is decided
in worlds of a few processes, so that all such conditions in the function, and in what it calls, go together. The two
terms are compared under shared assumptions about everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal as OneOf

from msgspec import Struct

from spmdlint.core.conditions import (
    WORLDS,
    Conditions,
    Expression,
    World,
    decided_in,
    is_about_process,
)
from spmdlint.core.evaluation import Evaluation
from spmdlint.core.values import Site
from spmdlint.domains.content import IDENTITY, Content, choice, content, kinds
from spmdlint.domains.effects import (
    Call,
    Choice,
    Effects,
    Fail,
    Leave,
    ParallelCall,
    Series,
    Star,
    Term,
    Unknown,
    calls_in,
    filtered,
    parts_of,
    series,
    specialised,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

Hazard = OneOf["condition", "loop", "data", "unsteady", "checkpoint"]
EXPANSIONS = 7
"""How many conditions are tried both ways in one comparison."""


class Divergence(Struct, frozen=True):
    """A condition that varies, the kind of its cause, and the first parallel call that only some processes make."""

    branch: Site
    kind: str
    call: ParallelCall
    others: tuple[ParallelCall, ...]
    early_exit: bool
    loop: bool
    handler: bool = False

    @property
    def hazard(self) -> Hazard:
        """The hazard, so that one fault has one code: what the call does takes precedence over the cause."""
        if self.call.checkpoint:
            return "checkpoint"
        if self.kind == "identity":
            return "loop" if self.loop else "condition"
        return "unsteady"


class Divergences:
    """The check over all functions that run on the host."""

    def __init__(self, evaluation: Evaluation, content: Content, effects: Effects, conditions: Conditions) -> None:
        self.ev = evaluation
        self.content = content
        self.effects = effects
        self.conditions = conditions

    def found(self) -> Iterator[Divergence]:
        """Every divergence, function by function, inner branches first; each call is named once."""
        for ref in self.ev.project.functions():
            if ref in self.effects.speaking and ref in self.effects.host:
                yield from self._in_function(ref)

    def _in_function(self, ref: FunctionRef) -> Iterator[Divergence]:
        term = self.effects.expanded(self.effects.term(ref))
        function, ssa = self.ev.project.function(ref), self.ev.structure.ssa(ref)
        found: list[tuple[int, Divergence]] = []
        for block in sorted(self.ev.functions[ref].live):
            arms = ssa.arms(block)
            test = function.blocks[block].test
            if arms is None or test is None:
                continue
            mask = content(self.content.of(ref, test))
            if mask:
                divergence = self._at_branch(ref, block, test, kinds(mask), term)
                if divergence is not None:
                    found.append((self._extent(ref, block), divergence))
        told: set[Site] = set()
        for _, divergence in sorted(found, key=lambda pair: pair[0]):
            if divergence.call.site not in told:
                told.update(call.site for call in (divergence.call, *divergence.others))
                yield divergence
        for divergence in self._chosen(ref):
            if divergence.call.site not in told:
                told.add(divergence.call.site)
                yield divergence

    def _extent(self, ref: FunctionRef, block: int) -> int:
        """How much code a branch decides over."""
        ssa = self.ev.structure.ssa(ref)
        join, seen, pending = ssa.join(block), {block}, [block]
        while pending:
            for target in ssa.usual(pending.pop()):
                if target != join and target not in seen:
                    seen.add(target)
                    pending.append(target)
        return len(seen)

    # -- branches

    def _at_branch(
        self, ref: FunctionRef, block: int, test: int, causes: list[str], term: Term
    ) -> Divergence | None:
        kind = causes[0]
        condition, _ = self.conditions.literal(ref, test)
        counted = filtered(term, self._counts(kind))
        difference = None
        for one, other in self._sides(ref, block, condition, counted):
            difference = first_difference(one, other, EXPANSIONS)
            if difference is not None:
                break
        if difference is None:
            return None
        call, others = difference
        ssa = self.ev.structure.ssa(ref)
        return Divergence(
            Site(ref, test),
            kind,
            call,
            others,
            early_exit=ssa.join(block) == s.EXIT,
            loop=any(loop.header == block for loop in ssa.loops),
        )

    def _counts(self, kind: str):  # type: ignore[no-untyped-def]
        if kind == "identity":
            return lambda call: True
        return lambda call: call.strength == "strong" or call.carried

    def _sides(self, ref: FunctionRef, block: int, condition: Expression, term: Term) -> Iterator[tuple[Term, Term]]:
        """The function as two processes see it that differ in a condition."""
        guards = dict(self.conditions.guards(ref, block))
        if is_about_process(condition):
            for one, other in _pairs(condition, guards):
                yield specialised(term, lambda c, w=one: decided_in(c, w)), specialised(  # type: ignore[misc]
                    term, lambda c, w=other: decided_in(c, w)  # type: ignore[misc]
                )
            return
        if any(_is_alone(guard, holds) for guard, holds in guards.items()):
            return
        known = {guard: holds for guard, holds in guards.items() if guard != condition}

        def side(truth: bool) -> Term:
            return specialised(term, lambda c: truth if c == condition else known.get(c))

        yield side(True), side(False)

    # -- callees that were chosen

    def _chosen(self, ref: FunctionRef) -> Iterator[Divergence]:
        """Calls of something that was chosen for a reason that varies."""
        function, evaluated = self.ev.project.function(ref), self.ev.functions[ref]
        masks = self.content.functions[ref].masks
        for n in sorted(evaluated.calls):
            o = function.operations[n]
            if not isinstance(o, s.Call) or function.block_of[n] not in evaluated.live:
                continue
            causes = choice(self.content.concrete(ref, masks[o.function]))
            method = function.operations[o.function]
            if isinstance(method, s.Attribute):
                causes |= choice(self.content.concrete(ref, masks[method.base]))
            if not causes:
                continue
            kind = kinds(causes)[0]
            guards = dict(self.conditions.guards(ref, function.block_of[n]))
            if any(_is_alone(guard, holds) for guard, holds in guards.items()):
                continue
            counts = self._counts(kind)
            ways = [
                filtered(self.effects.expanded(way), counts)
                for callee in self._alternatives(ref, n)
                for way in [self.effects._of_alternative(ref, n, callee, evaluated.calls[n].arguments, (), (Site(ref, n),))]
            ]
            for number, one in enumerate(ways):
                difference = next(
                    (d for other in ways[number + 1 :] if (d := first_difference(one, other, EXPANSIONS)) is not None), None
                )
                if difference is not None:
                    call, others = difference
                    yield Divergence(Site(ref, o.function), kind, call, others, early_exit=False, loop=False)
                    break

    def _alternatives(self, ref: FunctionRef, n: int) -> list[object]:
        from spmdlint.domains.effects import _place

        return sorted(self.ev.callees(self.ev.functions[ref].calls[n].callees), key=_place)  # type: ignore[arg-type]


def _pairs(condition: Expression, guards: dict[Expression, bool]) -> Iterator[tuple[World, World]]:
    """Two processes of one job that get to a condition and go different ways."""
    for world in WORLDS:
        if world[1] < 2 or not _gets_there(world, guards):
            continue
        for rank in range(world[0] + 1, world[1]):
            other = (rank, world[1])
            if _gets_there(other, guards) and decided_in(condition, world) is not decided_in(condition, other):
                yield world, other


def _gets_there(world: World, guards: dict[Expression, bool]) -> bool:
    return all(decided_in(guard, world) in (None, holds) for guard, holds in guards.items())


def _is_alone(guard: Expression, holds: bool) -> bool:
    """Whether a guard says that there is one process."""
    if not is_about_process(guard):
        return False
    return all(decided_in(guard, world) is not holds for world in WORLDS if world[1] > 1)


# -- comparison


def first_difference(
    one: Term, other: Term, tries: int
) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The first call that one of two terms makes and the other does not, in some case; and the calls after it."""
    if one == other or tries < 0:
        return None
    left, right = list(parts_of(one)), list(parts_of(other))
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
    position = 0
    while position < len(left) and position < len(right):
        a, b = left[position], right[position]
        if isinstance(a, Unknown) or isinstance(b, Unknown) or isinstance(a, Fail) or isinstance(b, Fail):
            return None
        if a == b or (isinstance(a, Call) and isinstance(b, Call) and a.call.matches(b.call)):
            position += 1
            continue
        if isinstance(a, Choice) or isinstance(b, Choice):
            return _expand(left[position:], right[position:], tries)
        if isinstance(a, Star) and isinstance(b, Star):
            found = first_difference(a.body, b.body, tries - 1)
            if found is not None:
                return found
            position += 1
            continue
        if isinstance(a, Leave):
            return _rest(right[position:], tries)
        if isinstance(b, Leave):
            return _rest(left[position:], tries)
        return _rest(left[position:], tries) or _rest(right[position:], tries)
    return _rest(left[position:], tries) or _rest(right[position:], tries)


def _expand(left: list[Term], right: list[Term], tries: int) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The difference in some case of the first choice."""
    mine = left[0] if isinstance(left[0], Choice) else None
    yours = right[0] if isinstance(right[0], Choice) else None
    first = mine or yours
    assert first is not None
    if first.condition is not None:
        for truth in (True, False):
            decide = lambda c, t=truth: t if c == first.condition else None  # type: ignore[misc]  # noqa: E731
            found = first_difference(specialised(series(*left), decide), specialised(series(*right), decide), tries - 1)
            if found is not None:
                return found
        return None
    # It is not known what decides: one side may take any arm, and only what no arm of the other makes is a difference.
    for sides in ((left, right), (right, left)):
        for arm in _arms(sides[0]):
            found = None
            for answer in _arms(sides[1]):
                found = first_difference(arm, answer, tries - 1)
                if found is None:
                    break
            if found is not None:
                return found
    return None


def _arms(parts: list[Term]) -> list[Term]:
    head = parts[0]
    if isinstance(head, Choice) and head.condition is None:
        return [series(head.yes, *parts[1:]), series(head.no, *parts[1:])]
    return [series(*parts)]


def _rest(parts: list[Term], tries: int) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The first call of what one side does in addition, in some case."""
    for position, part in enumerate(parts):
        if isinstance(part, (Unknown, Fail)):
            return None
        calls = calls_in(part)
        if calls:
            after = [call for each in parts[position + 1 :] for call in calls_in(each)]
            return calls[0], tuple(dict.fromkeys([*calls[1:], *after]))
    return None
