"""Stratum 5: parallel calls that only some processes make, or that they make in different orders.

For each condition that has a cause, the whole function is looked at twice: as a process sees it for which the
condition holds, and as one sees it for which it does not. A condition about the number of the process alone is decided
in worlds of a few processes, so that all such conditions in the function, and in what it calls, go together. The two
terms are compared under shared assumptions about everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal as OneOf
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.core.conditions import (
    RANK,
    SEVERAL,
    Conditions,
    Expression,
    World,
    consequences,
    decided_in,
    is_about_process,
    leaves,
    normal,
    simplified,
)
from spmdlint.core.evaluation import Evaluation
from spmdlint.core.ssa import NOTHING, Loop, Ssa, Try
from spmdlint.core.values import (
    Alternative,
    External,
    Object,
    Parameter,
    Site,
    Value,
    element_kind,
    in_order,
    only,
)
from spmdlint.domains.content import (
    BIT,
    CAUSES,
    IDENTITY,
    Content,
    Mask,
    any_facet,
    choice,
    content,
    kinds,
    size_as_content,
    truth,
)
from spmdlint.domains.effects import (
    Call,
    Choice,
    Effects,
    Element,
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
    quitting,
    series,
    specialised,
    without_pauses,
    without_raisings,
)
from spmdlint.hazards.why import Why
from spmdlint.heuristics.extent import Extent
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import inputs

Hazard = OneOf["condition", "loop", "data", "unsteady", "checkpoint", "exception"]
REPORTED: Mask = CAUSES & ~(BIT["thread"] | BIT["callback"])
"""The causes of default findings: what another thread has stored is mostly there on all processes in the end."""
LARGEST = 1 << 16
"""The largest number of a process that is tried."""
EXPANSIONS = 7
"""How many conditions are tried both ways in one comparison."""


Varying: TypeAlias = "dict[FunctionRef, Mask]"
"""The kinds of elements that only some processes have, and why."""


class Divergence(Struct, frozen=True):
    """A condition that varies, the kind of its cause, and the first parallel call that only some processes make.

    ``handler``: the condition is that an exception is raised, and the call is in the handler or what this interrupts.
    """

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
        if self.handler:
            return "exception"
        if self.kind in ("identity", "group"):
            return "loop" if self.loop else "condition"
        return "unsteady"


class Divergences:
    """The check over all functions that run on the host."""

    def __init__(
        self,
        evaluation: Evaluation,
        content: Content,
        effects: Effects,
        conditions: Conditions,
        hand: Extent,
        why: Why,
    ) -> None:
        self.ev = evaluation
        self.content = content
        self.effects = effects
        self.conditions = conditions
        self.hand = hand
        self.why = why

    def found(self) -> Iterator[Divergence]:
        """Every divergence, function by function, inner branches first; each call is named once."""
        for ref in self.ev.project.functions():
            if ref in self.effects.speaking and ref in self.effects.host:
                yield from self._in_function(ref)

    def _in_function(self, ref: FunctionRef) -> Iterator[Divergence]:
        term = without_raisings(without_pauses(self.effects.expanded(self.effects.term(ref))))
        function, ssa = self.ev.project.function(ref), self.ev.structure.ssa(ref)
        found: list[tuple[int, Divergence]] = []
        for block in sorted(self.ev.functions[ref].live):
            test = function.blocks[block].test
            if test is None or (ssa.arms(block) is None and ssa.guarded_by(block) is None):
                continue
            mask = self._causes(ref, block, test)
            if mask and not self.intended(ref, test):
                divergence = self._at_branch(ref, block, test, kinds(mask), term)
                if divergence is not None:
                    found.append((len(self._extent(ref, block)), divergence))
        varying = {loop.header: self._varying(ref, loop) for loop in ssa.loops}
        found.extend(self._loops(ref, varying))
        told: set[Site] = set()
        for _, divergence in sorted(found, key=lambda pair: pair[0]):
            if divergence.call.site not in told:
                told.update(call.site for call in (divergence.call, *divergence.others))
                yield divergence
        elements = [loop_test(self.ev, ref, loop) for loop in ssa.loops if varying[loop.header]]
        for divergence in (*self._chosen(ref, elements), *self._in_turn(ref, term)):
            if divergence.call.site not in told:
                told.add(divergence.call.site)
                yield divergence

    def _causes(self, ref: FunctionRef, block: int, test: int) -> Mask:
        """The causes of a condition: those of its facts that what it is made of has, where that is known."""
        whole = content(truth(self.content.of(ref, test))) & REPORTED
        if not whole:
            return 0
        guards = dict(self.conditions.guards(ref, block))
        worlds = [world for world in SEVERAL if _gets_there(world, guards)]

        def decide(literal: Expression) -> bool | None:
            if literal in guards:
                return guards[literal]
            answers = {decided_in(literal, world) for world in worlds}
            return answers.pop() if len(answers) == 1 else None

        small = simplified(self.conditions.expression(ref, test), decide)
        return whole & self._of_condition(small, self._agreed(ref, block, guards))

    def _of_condition(self, expression: Expression, agreed: frozenset[Expression]) -> Mask:
        """The causes of a condition, part by part."""
        if expression in agreed:
            return 0
        if expression[0] in ("not", "and", "or"):
            found = 0
            for part in expression[1:]:
                found |= self._of_condition(part, agreed)
            return found
        found = 0
        for leaf in leaves(expression, agreed):
            found |= self._of_leaf(leaf)
        return found

    def _agreed(self, ref: FunctionRef, block: int, guards: dict[Expression, bool]) -> frozenset[Expression]:
        """What the processes have compared on every way to a block."""
        found: set[Expression] = set()
        for guard, holds in guards.items():
            if holds:
                found.update(self._equal_to_all(guard))
        function, ssa = self.ev.project.function(ref), self.ev.structure.ssa(ref)
        for literal in self._compared(ref, block):
            found.update(self._equal_to_all(literal))
        for n, call in self.ev.functions[ref].calls.items():
            callee = only(call.callees)
            row = self.ev.row(callee.name) if isinstance(callee, External) else None
            if row is None or row.role != "asserts":
                continue
            at = function.block_of[n]
            if ssa.dominates(at, block) and (at != block or n < (function.blocks[block].test or 0)):
                found.update(self._inside(ref, n, 6))
        return frozenset(found)

    def _compared(self, ref: FunctionRef, block: int) -> Iterator[Expression]:
        """What holds in a block because a branch before it raises otherwise, in every job of several processes."""
        ssa = self.ev.structure.ssa(ref)
        for each in self.ev.functions[ref].live:
            arms, test = ssa.arms(each), ssa.blocks[each].test
            if arms is None or test is None or not ssa.dominates(ssa.join(each), block):
                continue
            fails = [not self._reaches(ssa, arm, ssa.join(each)) for arm in arms]
            if fails.count(True) == 1 and all(
                decided_in(guard, world) is holds
                for guard, holds in self.conditions.guards(ref, each)
                for world in SEVERAL
            ):
                literal, holds = self.conditions.literal(ref, test)
                if holds == fails[1]:
                    yield literal

    def _equal_to_all(self, guard: Expression) -> Iterator[Expression]:
        """What a guard says to be equal to a value that has no cause."""
        if guard[0] == "call":
            for part in guard[2:]:
                yield from self._equal_to_all(part)
        if guard[0] == "==" and len(guard) == 3:
            for one, other in ((guard[1], guard[2]), (guard[2], guard[1])):
                if one[0] != "constant" and not any(self._of_leaf(leaf) & CAUSES for leaf in leaves(other)):
                    yield one

    def _inside(self, ref: FunctionRef, n: int, depth: int) -> Iterator[Expression]:
        """The expressions that an operation is made of."""
        yield self.conditions.expression(ref, n)
        if depth:
            for each in inputs(self.ev.project.function(ref).operations[n]):
                yield from self._inside(ref, each, depth - 1)

    def _of_leaf(self, leaf: Expression) -> Mask:
        """The causes of one part of an expression, in any facet."""
        head = leaf[0]
        if head == "rank":
            return IDENTITY
        if head == "at":
            if leaf[1] not in self.content.functions and self.ev.project.function(leaf[1]).kind == "module":
                return 0  # nothing that is stored there has a cause, or it would have been looked at
            mask = self.content.of(leaf[1], leaf[2])
        elif head == "phi":
            facts = self.content.functions.get(leaf[1])
            if facts is None:
                return CAUSES
            mask = self.content.concrete(leaf[1], facts.phis[NOTHING - 1 - leaf[2]])
        elif head == "parameter":
            mask = self.content.read(("entry", leaf[1], leaf[2]))
        elif head == "inner":
            return self._of_inner(leaf)
        elif head == "attribute":
            return self._of_attribute(leaf)
        else:
            return CAUSES
        return any_facet(mask)

    def _of_attribute(self, leaf: Expression) -> Mask:
        """The causes of an attribute: of what is stored there, and of which object it is one of."""
        owners = self._alternatives_of(leaf[1])
        if owners is None:
            return CAUSES
        found = self._of_leaf(leaf[1]) if len(owners) > 1 else 0
        for a in owners:
            if isinstance(a, External):
                known = self.ev.knowledge.get(self.ev.knowledge.outside(f"{a.name}.{leaf[2]}"))
                found |= BIT[known.source] if known is not None and known.attribute and known.source is not None else 0
            elif isinstance(a, Object) and isinstance(a.kind, FunctionRef):
                found |= any_facet(self.content.field(a.kind, leaf[2]))
            else:
                return CAUSES
        return found

    def _alternatives_of(self, expression: Expression) -> Value | None:
        """What an expression may be; None if that is not known."""
        head = expression[0]
        if head == "at":
            return self.ev.resolved(self.ev.functions[expression[1]].values[expression[2]])
        if head == "parameter":
            return self.ev.entry(Parameter(expression[1], expression[2]))
        if head == "object":
            return frozenset((expression[1],))
        if head == "attribute":
            owners = self._alternatives_of(expression[1])
            if owners is not None:
                held = frozenset(each for a in owners for each in self.ev.attribute(a, expression[2]))
                return self.ev.resolved(held)
        return None

    def _of_inner(self, leaf: Expression) -> Mask:
        """The causes of what stands for itself in a function, in one call of it."""
        inside = leaf[3]
        facts = self.content.functions.get(inside[1]) if len(inside) > 1 else None
        if facts is None or inside[0] not in ("at", "phi"):
            return self._of_leaf(inside)
        mask = facts.masks[inside[2]] if inside[0] == "at" else facts.phis[NOTHING - 1 - inside[2]]
        return any_facet(self.content.inside_call(leaf[1], leaf[2], inside[1], mask))

    def _loops(self, ref: FunctionRef, varying: Mapping[int, Varying]) -> Iterator[tuple[int, Divergence]]:
        """Loops over something that has more elements on one process than on another."""
        function, ssa = self.ev.project.function(ref), self.ev.structure.ssa(ref)
        for loop in ssa.loops:
            if loop.header not in self.ev.functions[ref].live:
                continue
            iterable, test = ssa.iterates(loop.header), function.blocks[loop.header].test
            if iterable is not None:
                mask = (
                    content(size_as_content(self.content.concrete(ref, self.content.iterated(ref, iterable))))
                    & REPORTED
                )
            elif test is not None and ssa.arms(loop.header) is not None:
                mask, iterable = self._causes(ref, loop.header, test), test
            else:
                continue
            guards = dict(self.conditions.guards(ref, loop.header))
            if any(_is_alone(guard, holds) for guard, holds in guards.items()):
                continue
            several = self._by_element(ref, loop, iterable, varying[loop.header])
            if several is not None:
                yield from several
                continue
            if not mask:
                continue
            kind = kinds(mask)[0]
            if kind == "files" and (ssa.iterates(loop.header) is not None or self._changes_in(ref, iterable, loop, 10)):
                continue  # a finding about the order of the listing says more
            body = self._round(ref, loop, kind)
            calls = calls_in(body)
            if calls and not self.intended(ref, iterable):
                others = tuple(dict.fromkeys(calls[1:]))
                found = Divergence(Site(ref, iterable), kind, calls[0], others, early_exit=False, loop=True)
                yield len(loop.blocks), found

    def _round(self, ref: FunctionRef, loop: Loop, kind: str, element: Element | None = None) -> Term:
        body = self.effects.expanded(self.effects.of_loop(ref, loop.header, element))
        return filtered(without_raisings(body), self._counts(ref, kind))

    def _by_element(
        self, ref: FunctionRef, loop: Loop, iterable: int, varying: Varying
    ) -> list[tuple[int, Divergence]] | None:
        """The calls of elements that only some processes have; None if it is not known which these are."""
        test = loop_test(self.ev, ref, loop)
        if not varying or calls_in(self._round(ref, loop, "identity", (test, ref))):
            return None  # what no element does, each round does
        found = []
        for key, cause in sorted(varying.items()):
            kind = kinds(cause)[0]
            calls = calls_in(self._round(ref, loop, kind, (test, key)))
            if calls and not self.intended(ref, iterable):
                others = tuple(dict.fromkeys(calls[1:]))
                told = Divergence(Site(ref, iterable), kind, calls[0], others, early_exit=False, loop=True)
                found.append((len(loop.blocks), told))
        return found

    def _varying(self, ref: FunctionRef, loop: Loop) -> Varying:
        """The kinds of elements that a loop takes on some processes only, and why; empty if that is not known."""
        iterable, test = self.ev.structure.ssa(ref).iterates(loop.header), loop_test(self.ev, ref, loop)
        values, masks = self.ev.functions[ref].values, self.content.functions[ref].masks
        if iterable is None or any(element_kind(a) is None for a in self.ev.resolved(values[test])):
            return {}
        found = {}
        for key, mask in self.content.presence(ref, values[iterable], masks[iterable]).items():
            cause = REPORTED & truth(content(self.content.concrete(ref, mask)))
            if cause:
                found[key] = cause
        return found

    def intended(self, ref: FunctionRef, number: int) -> bool:
        """Whether the author expects code to fail: it is in the block of a manager that says so."""
        function = self.ev.project.function(ref)
        entered = [(n, o.manager) for n, o in enumerate(function.operations) if type(o) is s.Enter and n < number]
        for _, manager in entered:
            ends = [n for n, o in enumerate(function.operations) if type(o) is s.Leave and o.manager == manager]
            if (not ends or number < max(ends)) and self._expects(ref, manager):
                return True
        return False

    def _expects(self, ref: FunctionRef, manager: int) -> bool:
        operation = self.ev.project.function(ref).operations[manager]
        callee = self.ev.project.function(ref).operations[operation.function] if isinstance(operation, s.Call) else None
        name = callee.name if isinstance(callee, (s.Attribute, s.Load)) else ""
        if name in self.ev.rows.failing:
            return True
        for a in self.ev.functions[ref].values[manager]:
            if self.ev.is_generator(a) and a.kind != ref:
                made = self.ev.project.function(a.kind)  # type: ignore[arg-type]
                if any(self._expects(a.kind, o.manager) for o in made.operations if type(o) is s.Enter):  # type: ignore[arg-type]
                    return True
        return False

    def _extent(self, ref: FunctionRef, block: int) -> set[int]:
        """The code that a branch decides over; if it may leave a loop, all of that."""
        ssa = self.ev.structure.ssa(ref)
        guarded = ssa.guarded_by(block)
        if guarded is not None:
            return self._around_handler(ssa, block, guarded)
        join: int | None = ssa.join(block)
        if any(not self._reaches(ssa, target, join) for target in ssa.usual(block)):
            join = None  # whoever leaves on one of its ways misses all that follows
        seen: set[int] = set()
        pending = [block]
        while pending:
            for target in ssa.usual(pending.pop()):
                if target not in (join, block) and target not in seen:
                    seen.add(target)
                    pending.append(target)
        for loop in ssa.loops:
            if block in loop.exits:
                seen |= loop.blocks
        return seen

    @staticmethod
    def _around_handler(ssa: Ssa, block: int, guarded: Try) -> set[int]:
        """The handler of a clause, what its exception interrupts, and what either of them leads to alone."""
        target = next(clause.target for clause in guarded.clauses if clause.block == block)
        join = ssa.meeting(min(guarded.blocks), target)
        seen = {target, *guarded.blocks}
        pending = list(seen)
        while pending:
            for each in ssa.usual(pending.pop()):
                if each not in seen and each != join:
                    seen.add(each)
                    pending.append(each)
        return seen

    @staticmethod
    def _reaches(ssa: Ssa, start: int, end: int | None) -> bool:
        seen, pending = {start}, [start]
        while pending:
            each = pending.pop()
            if each == end:
                return True
            for target in ssa.usual(each):
                if target not in seen:
                    seen.add(target)
                    pending.append(target)
        return False

    def _decided_here(self, ref: FunctionRef, block: int, calls: Sequence[ParallelCall]) -> list[ParallelCall]:
        """Those of some calls that a branch decides about; others differ because of branches of their own."""
        function, extent = self.ev.project.function(ref), self._extent(ref, block)
        here = [call for call in calls if function.block_of[call.site.number] in extent]
        return [call for call in here if not self.intended(ref, call.site.number)]

    # -- branches

    def _at_branch(self, ref: FunctionRef, block: int, test: int, causes: list[str], term: Term) -> Divergence | None:
        condition, _ = self.conditions.literal(ref, test)
        kind = "group" if causes[0] == "identity" and _is_membership(condition) else causes[0]
        counted = filtered(quitting(term, leaves_job=kind == "identity"), self._counts(ref, kind))
        if kind == "identity" and self._is_rank_of_others(ref, test):
            counted = filtered(counted, lambda call: self.hand.waits_for_others(call.same))
        difference = None
        for one, other in self._sides(ref, block, condition, counted):
            difference = first_difference(one, other, EXPANSIONS)
            if difference is not None:
                break
        if difference is None:
            return None
        here = self._decided_here(ref, block, difference_calls(difference))
        if not here:
            return None
        call, others = here[0], tuple(here[1:])
        if not self._is_of_some_element(ref, block, test, kind, call):
            return None
        guarded = self.ev.structure.ssa(ref).guarded_by(block)
        if guarded is not None:
            return self._at_handler(ref, block, test, kind, guarded, here)
        if kind == "files" and not (
            any(self._broadcasts(each) for each in here) or self._is_asked_again(ref, block, test)
        ):
            return None
        ssa = self.ev.structure.ssa(ref)
        return Divergence(
            Site(ref, test),
            kind,
            call,
            others,
            early_exit=ssa.join(block) == s.EXIT,
            loop=any(loop.header == block for loop in ssa.loops),
        )

    def _at_handler(
        self, ref: FunctionRef, block: int, test: int, kind: str, guarded: Try, here: Sequence[ParallelCall]
    ) -> Divergence | None:
        """A clause that some processes enter.

        Whether something outside the program fails on one process, its text does not say: only calls that nobody would
        make on one process alone tell, or a file of the process's own.
        """
        ssa, block_of = self.ev.structure.ssa(ref), self.ev.project.function(ref).block_of
        target = next(clause.target for clause in guarded.clauses if clause.block == block)
        inside = [call for call in here if ssa.dominates(target, block_of[call.site.number])]
        tried = [call for call in here if block_of[call.site.number] in guarded.blocks]
        if kind == "files" and not (inside and not tried and inside[0].everyone and not inside[0].checkpoint):
            return None
        call = inside[0] if inside and not tried else here[0]
        others = tuple(each for each in here if each != call)
        handler = call in inside or call in tried
        return Divergence(Site(ref, test), kind, call, others, early_exit=False, loop=False, handler=handler)

    def _is_of_some_element(self, ref: FunctionRef, block: int, test: int, kind: str, call: ParallelCall) -> bool:
        """Whether a call of a loop's element still differs if the elements are looked at one by one."""
        function, ssa = self.ev.project.function(ref), self.ev.structure.ssa(ref)
        o = function.operations[call.site.number]
        for loop in ssa.loops:
            taken = loop_test(self.ev, ref, loop)
            if not isinstance(o, s.Call) or not self.effects.is_of(ref, o.function, taken):
                continue
            elements = {element_kind(a) for a in self.ev.resolved(self.ev.functions[ref].values[taken])}
            if len(elements) < 2 or None in elements or block not in loop.blocks:
                return True
            expression = self.conditions.expression(ref, test)
            for key in sorted(each for each in elements if each is not None):
                condition, _ = self.conditions.of_element(expression, ref, taken, key)
                body = self._round(ref, loop, kind, (taken, key))
                sides = self._sides(ref, block, condition, body)
                if any(first_difference(one, other, EXPANSIONS) is not None for one, other in sides):
                    return True
            return False
        return True

    def _is_asked_again(self, ref: FunctionRef, block: int, test: int) -> bool:
        """Whether a loop asks for the same file in every round: each process looks at a time of its own."""
        ssa = self.ev.structure.ssa(ref)
        around = [loop for loop in ssa.loops if block in loop.blocks]
        return bool(around) and not self._changes_in(ref, test, around[0], 10)

    def _changes_in(self, ref: FunctionRef, number: int, loop: Loop, depth: int) -> bool:
        """Whether what an operation is made of is computed in a loop."""
        ssa = self.ev.structure.ssa(ref)
        o = self.ev.project.function(ref).operations[number]
        if isinstance(o, s.Load):
            definition = ssa.loads.get(number)
            if definition is None or definition == NOTHING:
                return False
            if ssa.block_of(definition) not in loop.blocks:
                return False
            if definition < NOTHING:
                return True
            return self._changes_in(ref, definition, loop, depth - 1) if depth else True
        if isinstance(o, (s.Next, s.Item)):
            return True
        if isinstance(o, s.Call) and self._changes_in(ref, o.function, loop, depth - 1):
            return True
        return any(self._changes_in(ref, each, loop, depth - 1) for each in inputs(o)) if depth else True

    def _broadcasts(self, call: ParallelCall) -> bool:
        """Whether a call sends the value of one process to the others, which is what a file test is asked for."""
        known = self.ev.knowledge.get(call.same) if isinstance(call.same, str) and len(call.path) == 1 else None
        return known is not None and known.agreement and not known.gathers

    def _is_rank_of_others(self, ref: FunctionRef, test: int) -> bool:
        """Whether another library tells the processes apart, in a program where each has a JAX of its own."""
        return self.hand.is_told_apart_by_others(ref.path, self.why.source(ref, test, "identity"))

    def _counts(self, ref: FunctionRef, kind: str) -> Callable[[ParallelCall], bool]:
        """Which calls count behind a condition with this kind of cause."""
        if kind == "group":  # processes without devices in a group skip the group's calls, and may do so
            return lambda call: call.everyone and not call.of_devices
        if kind == "identity":
            alone = self.hand.maps_by_hand(ref.path)
            return lambda call: call.strength == "strong" or not alone
        several = self.hand.written_for(ref.path)
        around = self.hand.around(ref.path)
        return lambda call: (
            (call.strength == "strong" or (call.carried and several)) and (around or not call.checkpoint)
        )

    def _sides(self, ref: FunctionRef, block: int, condition: Expression, term: Term) -> Iterator[tuple[Term, Term]]:
        """The function as two processes see it that differ in a condition."""
        guards = dict(self.conditions.guards(ref, block))
        if is_about_process(condition):
            for one, other in _pairs(condition, guards):
                yield specialised(term, _as_seen_by(one)), specialised(term, _as_seen_by(other))
            return
        if any(_is_alone(guard, holds) for guard, holds in guards.items()):
            return
        known: dict[Expression, bool] = {}
        for guard, holds in guards.items():
            if guard != condition:
                known.update(consequences(guard, holds=holds))
        answers = _following(condition, True), _following(condition, False)

        def shared(literal: Expression) -> bool | None:
            """The answer of another condition, if only one leaves both answers of this condition possible."""
            for holds in (True, False):
                following = consequences(literal, holds=holds)
                if any(answer.get(each, value) != value for each, value in following.items() for answer in answers):
                    return not holds
            return None

        def side(answer: Mapping[Expression, bool]) -> Term:
            following = {**known, **answer}
            return specialised(term, lambda c: following[c] if c in following else shared(c))

        yield side(answers[0]), side(answers[1])

    # -- blocks that processes enter in turn

    def _in_turn(self, ref: FunctionRef, term: Term) -> Iterator[Divergence]:
        """Calls in the block of a manager that makes some processes wait before it and the others after it.

        Each function called makes the same calls on every process, and together they do not.
        """
        function = self.ev.project.function(ref)
        managers = [
            n
            for n, o in enumerate(function.operations)
            if type(o) is s.Enter and _is_about_turns(self.effects.of_operation(ref, n, o))
        ]
        if not managers:
            return
        for one, other in _pairs_of_all():
            difference = first_difference(
                specialised(term, _as_seen_by(one)),
                specialised(term, _as_seen_by(other)),
                EXPANSIONS,
            )
            if difference is not None:
                inside = [call for call in (difference[0], *difference[1]) if call.site.number not in managers]
                calls = [c for c in inside if not isinstance(function.operations[c.site.number], (s.Enter, s.Leave))]
                if calls:
                    manager = max((n for n in managers if n < calls[0].site.number), default=managers[0])
                    yield Divergence(Site(ref, manager), "identity", calls[0], (), early_exit=False, loop=False)
                return

    # -- callees that were chosen

    def _chosen(self, ref: FunctionRef, elements: Sequence[int]) -> Iterator[Divergence]:
        """Calls of something that was chosen for a reason that varies.

        ``elements``: the operations that give the elements of loops whose kinds were told apart.
        """
        function, evaluated = self.ev.project.function(ref), self.ev.functions[ref]
        masks = self.content.functions[ref].masks
        for n in sorted(evaluated.calls):
            o = function.operations[n]
            if not isinstance(o, s.Call) or function.block_of[n] not in evaluated.live:
                continue
            if any(self.effects.is_of(ref, o.function, element) for element in elements):
                continue
            causes = REPORTED & choice(self.content.concrete(ref, masks[o.function]))
            method = function.operations[o.function]
            if isinstance(method, s.Attribute):
                causes |= REPORTED & choice(self.content.concrete(ref, masks[method.base]))
            if not causes:
                continue
            kind = kinds(causes)[0]
            if kind == "files":
                continue  # a library that is there or not, a file that is found: mostly alike everywhere
            guards = dict(self.conditions.guards(ref, function.block_of[n]))
            if any(_is_alone(guard, holds) for guard, holds in guards.items()):
                continue
            counts = self._counts(ref, kind)
            ways = [
                filtered(without_raisings(self.effects.expanded(way)), counts)
                for callee in self._alternatives(ref, n)
                for way in [
                    self.effects.of_alternative(ref, n, callee, evaluated.calls[n].arguments, (), (Site(ref, n),))
                ]
            ]
            for number, one in enumerate(ways):
                difference = next(
                    (d for other in ways[number + 1 :] if (d := first_difference(one, other, EXPANSIONS)) is not None),
                    None,
                )
                if difference is not None:
                    call, others = difference
                    yield Divergence(Site(ref, o.function), kind, call, others, early_exit=False, loop=False)
                    break

    def _alternatives(self, ref: FunctionRef, n: int) -> list[Alternative]:
        found: list[Alternative] = []
        for a in sorted(self.ev.callees(self.ev.functions[ref].calls[n].callees), key=in_order):
            found.extend(self._held_apart(a))
        return found

    def _held_apart(self, a: Alternative) -> list[Alternative]:
        """A partial of something that was chosen, as one partial for each of these."""
        if self.ev.is_partial(a):
            held = a.arguments
            for position, value in enumerate(held.positional):
                if len(value) > 1:
                    before, after = held.positional[:position], held.positional[position + 1 :]
                    given = [replace(held, positional=(*before, each, *after)) for each in _one_by_one(value)]
                    return [replace(a, arguments=each) for each in given]
            for position, (name, value) in enumerate(held.keywords):
                if len(value) > 1:
                    first, last = held.keywords[:position], held.keywords[position + 1 :]
                    given = [replace(held, keywords=(*first, (name, each), *last)) for each in _one_by_one(value)]
                    return [replace(a, arguments=each) for each in given]
        return [a]


def _one_by_one(value: Value) -> list[Value]:
    return [frozenset((each,)) for each in sorted(value, key=in_order)]


def loop_test(evaluation: Evaluation, ref: FunctionRef, loop: Loop) -> int:
    """The operation that a loop's header ends in; 0 if there is none."""
    return evaluation.project.function(ref).blocks[loop.header].test or 0


def _is_membership(condition: Expression) -> bool:
    """Whether a condition picks some processes out of many, as a group of devices does."""
    if condition[0] == "in":
        return bool(condition[1] == RANK)
    if condition[0] == "<" and RANK in condition[1:]:
        other = condition[1] if condition[2] == RANK else condition[2]
        return not (other[0] == "constant" and other[2] in (0, 1))
    return False


def _as_seen_by(world: World) -> Callable[[Expression], bool | None]:
    """Conditions about the number of the process, decided for one process."""
    return lambda condition: decided_in(condition, world)


def _assuming(assumed: Expression, truth: bool) -> Callable[[Expression], bool | None]:
    return lambda condition: truth if condition == assumed else None


def _pairs(condition: Expression, guards: dict[Expression, bool]) -> Iterator[tuple[World, World]]:
    """Two processes of one job that get to a condition and go different ways."""
    numbers = {abs(n) for each in (condition, *guards) for n in _numbers(each)}
    ranks = sorted({0, 1, 2, 3} | {n + d for n in numbers for d in (-1, 0, 1) if 0 <= n + d < LARGEST})
    for count in sorted({2, 3, 4, ranks[-1] + 1}):
        here = [(rank, count) for rank in ranks if rank < count and _gets_there((rank, count), guards)]
        for position, world in enumerate(here):
            for other in here[position + 1 :]:
                if decided_in(condition, world) is not decided_in(condition, other):
                    yield world, other
                    break


def _numbers(expression: Expression) -> Iterator[int]:
    """The integers in an expression."""
    for part in expression:
        if type(part) is int:
            yield part
        elif type(part) is tuple:
            yield from _numbers(part)


def _pairs_of_all() -> Iterator[tuple[World, World]]:
    """The first two processes of a job of two and of three."""
    for count in (2, 3):
        yield (0, count), (1, count)


def _is_about_turns(term: Term) -> bool:
    """Whether a condition about the number of the process is anywhere in a term."""
    if isinstance(term, Choice):
        return (term.condition is not None and is_about_process(term.condition)) or (
            _is_about_turns(term.yes) or _is_about_turns(term.no)
        )
    if isinstance(term, Series):
        return any(map(_is_about_turns, term.parts))
    return isinstance(term, Star) and _is_about_turns(term.body)


def _gets_there(world: World, guards: dict[Expression, bool]) -> bool:
    return all(decided_in(guard, world) in (None, holds) for guard, holds in guards.items())


def _is_alone(guard: Expression, holds: bool) -> bool:
    """Whether a guard says that there is one process."""
    if not is_about_process(guard):
        return False
    return all(decided_in(guard, world) is not holds for world in SEVERAL)


# -- comparison


def difference_calls(difference: tuple[ParallelCall, tuple[ParallelCall, ...]]) -> tuple[ParallelCall, ...]:
    """All calls that a difference names."""
    return (difference[0], *difference[1])


def _following(condition: Expression, truth: bool) -> dict[Expression, bool]:
    """What holds in a job of several processes if a condition has an answer."""
    small, holds = normal(simplified(condition, _in_any_job), True)
    return {**consequences(small, holds=truth == holds), condition: truth}


def _in_any_job(literal: Expression) -> bool | None:
    """The answer of a condition that is the same on all processes of all jobs of several."""
    answers = {decided_in(literal, world) for world in SEVERAL}
    return answers.pop() if len(answers) == 1 else None


def first_difference(
    one: Term, other: Term, tries: int, rounds: Sequence[ParallelCall] = ()
) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The first call that one of two terms makes and the other does not, in some case; and the calls after it.

    ``rounds``: the calls of the loop that the terms are rounds of: whoever leaves it early makes fewer of them.
    """
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
            return _expand(left[position:], right[position:], tries, rounds)
        if isinstance(a, Star) and isinstance(b, Star):
            inside = calls_in(a.body) or calls_in(b.body)
            found = first_difference(a.body, b.body, tries - 1, inside)
            if found is not None:
                return found
            position += 1
            continue
        if isinstance(a, Leave) or isinstance(b, Leave):
            return _rest((right if isinstance(a, Leave) else left)[position:]) or _fewer(rounds)
        return _unmatched(left[position:], right[position:])
    if rounds and any(isinstance(side[position], Leave) for side in (left, right) if position < len(side)):
        return _fewer(rounds)
    return _rest(left[position:]) or _rest(right[position:])


def _unmatched(left: list[Term], right: list[Term]) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """What one side does next; of the side that does what the other never does, if there is one."""
    mine, yours = _rest(left), _rest(right)
    if mine is not None and yours is not None:
        others = [call for part in right for call in calls_in(part)]
        if any(mine[0].matches(call) for call in others):
            own = [call for part in left for call in calls_in(part)]
            if not any(yours[0].matches(call) for call in own):
                return yours
    return mine or yours


def _fewer(rounds: Sequence[ParallelCall]) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    return (rounds[0], tuple(dict.fromkeys(rounds[1:]))) if rounds else None


def _expand(
    left: list[Term], right: list[Term], tries: int, rounds: Sequence[ParallelCall]
) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The difference in some case of the first choice."""
    first = left[0] if isinstance(left[0], Choice) else right[0]
    assert isinstance(first, Choice)
    if first.condition is not None:
        for truth in (True, False):
            decide = _assuming(first.condition, truth)
            mine, yours = specialised(series(*left), decide), specialised(series(*right), decide)
            found = first_difference(mine, yours, tries - 1, rounds)
            if found is not None:
                return found
        return None
    # It is not known what decides: one side may take any arm, and only what no arm of the other makes is a difference.
    for sides in ((left, right), (right, left)):
        for arm in _arms(sides[0]):
            found = None
            for answer in _arms(sides[1]):
                found = first_difference(arm, answer, tries - 1, rounds)
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


def _rest(parts: list[Term]) -> tuple[ParallelCall, tuple[ParallelCall, ...]] | None:
    """The first call of what one side does in addition, in some case."""
    for position, part in enumerate(parts):
        if isinstance(part, (Unknown, Fail)):
            return None
        calls = calls_in(part)
        if calls:
            after = [call for each in parts[position + 1 :] for call in calls_in(each)]
            return calls[0], tuple(dict.fromkeys([*calls[1:], *after]))
    return None
