"""What a piece of code does as seen by the other processes: a term over parallel calls.

A *behaviour* in the sense of Nielson and Nielson ("Higher-order concurrent programs with finite communication
topology", POPL 1994): calls in sequence, a choice between two terms, a term repeated by a loop. Terms are made in a
normal form, so that what cannot be distinguished is equal: a choice between equal terms is that term, an arm that
always raises stops the job and is no choice, a loop without calls is nothing.

An unresolved call is `Unknown`. It never counts as a call, so it does not make two terms differ. An unresolved call
that is given an object which makes parallel calls is `Handed`: it counts as whatever calls the other term has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.calls import PASSING
from spmdlint.analysis.callgraph.constructed import method_frames
from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.getters import Implied
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.values import (
    UNKNOWN,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    Value,
    Values,
    certain,
)
from spmdlint.analysis.evaluation.values import Unknown as UnknownValue
from spmdlint.analysis.variance.conditions import Closed, Conditions
from spmdlint.program import summary as s
from spmdlint.program.summary import EXIT, FAILURE

MAX_STEPS = 400
"""The most blocks walked for one term; beyond that, it is unknown."""
MAX_NESTING = 40
"""The most nested branches and loops that a term distinguishes; deeper ones are unknown."""


class Call(Struct, frozen=True):
    """A parallel call; its ``same`` is equal for two that the other processes see as one call."""

    call: ParallelCall


class Sequence(Struct, frozen=True):
    """One term after another; empty if nothing is called."""

    parts: tuple[Term, ...] = ()


class Choice(Struct, frozen=True):
    """One of two terms. ``condition`` is equal for two choices that certainly go the same way, None if unknown."""

    condition: object
    yes: Term
    no: Term


class Star(Struct, frozen=True):
    """A term repeated by a loop."""

    body: Term


class Leave(Struct, frozen=True):
    """Control leaves the piece of code early: a return, a break, the next iteration of a loop."""


class Fail(Struct, frozen=True):
    """The job stops here: an exception that nothing catches."""


class Unknown(Struct, frozen=True):
    """A call that cannot be resolved."""


class Handed(Struct, frozen=True):
    """A library is given an object that makes parallel calls: it may make any of them, in any order."""


Term: TypeAlias = Call | Sequence | Choice | Star | Leave | Fail | Unknown | Handed

NOTHING = Sequence()
NOT_KNOWN = "calls that are not known"
Counts: TypeAlias = Callable[[ParallelCall], bool]


class Terms:
    """Makes terms. One per run; ``conditions`` says which choices are the same."""

    def __init__(self, effects: Effects, conditions: Conditions) -> None:
        self.ev = effects.ev
        self.effects = effects
        self.conditions = conditions
        self.handed = HandedOver(effects)
        self._functions: Memo[Term] = Memo(NOTHING, Unknown())

    def of_function(self, frame: Frame) -> Term:
        """The term of a call of a function, which returns to its caller."""
        if self.effects.is_silent(frame):
            return NOTHING
        return self._functions.once(frame, lambda: _returned(self.between(frame, s.ENTRY, EXIT)))

    def between(
        self, frame: Frame, start: int, until: int, closed: Closed = frozenset(), without: int | None = None
    ) -> Term:
        """The term of the code from one block up to another; ``closed`` edges are not taken.

        The calls in the block ``without`` count as made before.
        """
        return _Walk(self, frame, closed, without).region(start, until, None)

    def of_running(self, frame: Frame, number: int, operation: s.Call | Implied) -> Term:
        """The term of one call, or of what runs a property or a special method."""
        if not isinstance(operation, s.Call):
            return sequence(*map(Call, self.effects.of_read(frame, number, operation)))
        return NOTHING if operation.decorator else self.of_call(frame, number, operation)

    def of_call(self, frame: Frame, number: int, operation: s.Call) -> Term:
        """The term of one call."""
        callees = self.effects.callees(frame, operation)
        callee = certain(callees)
        own = [callee] if isinstance(callee, FunctionValue) else self.effects.one_of(frame, callees)
        if own:
            first, *others = (self._of_own(frame, number, operation, each) for each in own)
            for other in others:
                first = choice(None, first, other)
            return first
        made = tuple(Call(call) for call in self.effects.of_call(frame, number, operation))
        if made:
            return sequence(*made)
        if self.handed.may_call(frame, operation, callees):
            return Handed()
        return Unknown() if UNKNOWN in callees else NOTHING

    def _of_own(self, frame: Frame, number: int, operation: s.Call, callee: FunctionValue) -> Term:
        """The term of a call of a function of the project."""
        arguments = self.ev.arguments(frame, operation)
        targets = self.effects.calls.targets(callee, arguments, frame.depth + 1)
        inner = (self.of_function(target.frame) for target in targets if target.way in PASSING)
        return sequence(*(_through(term, Site(frame.ref, number)) for term in inner))


class _Walk:
    """One walk over the control-flow graph of a function, with its limits."""

    def __init__(self, terms: Terms, frame: Frame, closed: Closed, without: int | None) -> None:
        self.terms = terms
        self.frame = frame
        self.closed = closed
        self.without = without
        self.function = terms.ev.function(frame)
        self.flow = terms.ev.flow(frame.ref)
        self.live = terms.ev.live_blocks(frame)
        self.steps = 0
        self.nesting = 0

    def region(self, start: int, until: int, within: frozenset[int] | None) -> Term:
        """The term of the blocks from ``start`` to ``until``, leaving early if control leaves ``within``."""
        if self.nesting == MAX_NESTING:
            return Unknown()
        self.nesting += 1
        try:
            return self._region(start, until, within)
        finally:
            self.nesting -= 1

    def _region(self, start: int, until: int, within: frozenset[int] | None) -> Term:
        parts: list[Term] = []
        seen: set[int] = set()
        block = start
        while block != until:
            self.steps += 1
            if self.steps > MAX_STEPS:
                return sequence(*parts, Unknown())
            if block == FAILURE:
                return sequence(*parts, Fail())
            if block == EXIT or block in seen or (within is not None and block not in within):
                return sequence(*parts, Leave())
            seen.add(block)
            if block != self.without:
                parts.extend(
                    self.terms.of_running(self.frame, number, operation)
                    for number, operation in self.terms.effects.running(self.frame, [block])
                )
            following = self._after(block, parts, until, within)
            if following is None:
                return sequence(*parts)
            block = following
        return sequence(*parts)

    def _after(self, block: int, parts: list[Term], until: int, within: frozenset[int] | None) -> int | None:
        """The block where control goes on after this one, adding what lies between to ``parts``; None if it ends."""
        targets = [
            edge.target
            for edge in self.function.blocks[block].edges
            if (edge.kind != "except" or self.flow.is_clause(block))
            and edge.target in self.live
            and (block, edge.target) not in self.closed
        ]
        body = self.flow.loops.get(block)
        if body:
            inside = [target for target in targets if target in body]
            if inside:
                parts.append(star(self.region(inside[0], block, body)))
            outside = [target for target in targets if target not in body]
            return outside[0] if outside else None
        if len(targets) < 2:
            return targets[0] if targets else None
        join = self.flow.joins_at(block)
        arms = [self.region(target, join, within) for target in targets]
        parts.append(self._choice(block, arms[0], arms[1]) if len(arms) == 2 else Unknown())
        return join

    def _choice(self, block: int, yes: Term, no: Term) -> Term:
        found = self.function.blocks[block]
        key = self.terms.conditions.key(self.frame, found.test) if found.test is not None else None
        kinds = [edge.kind for edge in found.edges if edge.kind in ("true", "false")]
        if (kinds[:1] == ["false"]) != (key is not None and not key[1]):
            yes, no = no, yes
        return choice(key[0] if key is not None else None, yes, no)


# -- the normal form


def sequence(*parts: Term) -> Term:
    """Terms one after another; nothing after an early exit is reached."""
    found: list[Term] = []
    for part in parts:
        found.extend(part.parts if isinstance(part, Sequence) else (part,))
    for position, part in enumerate(found):
        if isinstance(part, (Leave, Fail)):
            del found[position + 1 :]
            break
    return found[0] if len(found) == 1 else Sequence(tuple(found))


def choice(condition: object, yes: Term, no: Term) -> Term:
    """A choice between two terms."""
    if fails(yes) and not fails(no):
        return no
    if equal(yes, no) or fails(no):
        return no if any(map(_hands, _parts(no))) else yes
    return Choice(condition, yes, no)


def star(body: Term) -> Term:
    """A term repeated by a loop."""
    inner = _returned(body)
    return NOTHING if all(isinstance(part, Unknown) for part in _parts(inner)) else Star(inner)


def fails(term: Term) -> bool:
    """Whether a term always ends in an exception."""
    return any(isinstance(part, Fail) for part in _parts(term)[-1:])


def only(term: Term, counts: Counts) -> Term:
    """The term with only those calls that count."""
    if isinstance(term, Call):
        return term if counts(term.call) else NOTHING
    if isinstance(term, Sequence):
        return sequence(*(only(part, counts) for part in term.parts))
    if isinstance(term, Choice):
        return choice(term.condition, only(term.yes, counts), only(term.no, counts))
    return star(only(term.body, counts)) if isinstance(term, Star) else term


def surely_first(term: Term, expected: tuple[ParallelCall, ...]) -> tuple[ParallelCall, ...]:
    """The calls that a term certainly makes first; if these may be any calls at all, the expected ones."""
    found: list[ParallelCall] = []
    for part in _parts(term):
        if _hands(part):
            return expected
        if isinstance(part, Call):
            found.append(part.call)
        elif not isinstance(part, Unknown):
            break
    return tuple(found)


def equal(first: Term, second: Term) -> bool:
    """Whether the other processes cannot distinguish two terms."""
    one = [part for part in _parts(first) if not isinstance(part, Unknown)]
    other = [part for part in _parts(second) if not isinstance(part, Unknown)]
    # What both end with is the same for both, whatever it is.
    while one and other and one[-1] == other[-1]:
        one.pop()
        other.pop()
    for mine, yours in zip(one, other, strict=False):
        if _hands(mine) or _hands(yours):
            return True
        if not _equal_part(mine, yours):
            return False
    following = max(one, other, key=len)[min(len(one), len(other)) :]
    return not following or _hands(following[0])


def _hands(term: Term) -> bool:
    """Whether a term may be any calls at all."""
    if isinstance(term, Choice):
        return _hands(term.yes) or _hands(term.no)
    return any(map(_hands, _parts(term.body))) if isinstance(term, Star) else isinstance(term, Handed)


def _equal_part(first: Term, second: Term) -> bool:
    if isinstance(first, Call) and isinstance(second, Call):
        return first.call.matches(second.call)
    if isinstance(first, Star) and isinstance(second, Star):
        return equal(first.body, second.body)
    if isinstance(first, Choice) and isinstance(second, Choice):
        same = first.condition is not None and first.condition == second.condition
        return same and equal(first.yes, second.yes) and equal(first.no, second.no)
    return isinstance(first, (Leave, Fail)) and first == second


def _parts(term: Term) -> tuple[Term, ...]:
    return term.parts if isinstance(term, Sequence) else (term,)


def _returned(term: Term) -> Term:
    """A term without the early exit at its end, which leads to what comes next anyway."""
    parts = _parts(term)
    if parts and isinstance(parts[-1], Leave):
        parts = parts[:-1]
    if parts and isinstance(parts[-1], Choice):
        last = parts[-1]
        parts = (*parts[:-1], choice(last.condition, _returned(last.yes), _returned(last.no)))
    return sequence(*parts)


def calls_in(term: Term) -> tuple[ParallelCall, ...]:
    """The calls of a term in order; those of both arms, and those of loops once."""
    if isinstance(term, Call):
        return (term.call,)
    if isinstance(term, Choice):
        return calls_in(term.yes) + calls_in(term.no)
    if isinstance(term, Star):
        return calls_in(term.body)
    return tuple(call for part in term.parts for call in calls_in(part)) if isinstance(term, Sequence) else ()


def _through(term: Term, site: Site) -> Term:
    """A term as reached through one more call."""
    if isinstance(term, Call):
        return Call(replace(term.call, path=(site, *term.call.path)))
    if isinstance(term, Sequence):
        return Sequence(tuple(_through(part, site) for part in term.parts))
    if isinstance(term, Choice):
        return Choice(term.condition, _through(term.yes, site), _through(term.no, site))
    return Star(_through(term.body, site)) if isinstance(term, Star) else term


# -- in words


def written(term: Term) -> str:
    """A term as text: ``a; b`` in sequence, ``(a | b)`` a choice, ``{a}*`` in a loop, ``-`` nothing."""
    if isinstance(term, Call):
        return term.call.name
    if isinstance(term, Sequence):
        runs = groupby(map(written, term.parts))
        return "; ".join(t for text, same in runs for t in ([text] if text == NOT_KNOWN else same)) or "-"
    if isinstance(term, Choice):
        return f"({written(term.yes)} | {written(term.no)})"
    if isinstance(term, Star):
        return f"{{{written(term.body)}}}*"
    return "leave" if isinstance(term, Leave) else "fail" if isinstance(term, Fail) else NOT_KNOWN


class HandedOver:
    """Knows which objects make parallel calls in their methods. One per run."""

    def __init__(self, effects: Effects) -> None:
        self.ev = effects.ev
        self.effects = effects
        self._speaking: dict[Instance, bool] = {}

    def may_call(self, frame: Frame, operation: s.Call, callees: Values) -> bool:
        """Whether a call of unknown code is given an object with methods that make parallel calls."""
        if not any(map(self._is_foreign, callees)):
            return False
        given = (value for argument in operation.arguments for value in self.ev.value(frame, argument.value))
        return any(isinstance(value, Instance) and self._speaks(value) for value in given)

    def _is_foreign(self, callee: Value) -> bool:
        if isinstance(callee, External):
            top = callee.name.partition(".")[0]
            return (
                top not in sys.stdlib_module_names and top != "builtins" and self.ev.knowledge.get(callee.name) is None
            )
        return isinstance(callee, UnknownValue)

    def _speaks(self, instance: Instance) -> bool:
        found = self._speaking.get(instance)
        if found is None:
            methods = method_frames(self.ev, instance)
            found = self._speaking[instance] = any(self.effects.of_function(method) for method in methods)
        return found
