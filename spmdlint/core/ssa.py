"""Static single assignment form of one function: definitions, phis with their gates, control dependence, loops.

Definitions are found on demand for the names that are loaded, without placing phis for others, in the manner of Braun
et al. ("Simple and Efficient Construction of Static Single Assignment Form", CC 2013); control dependence is that of
Ferrante, Ottenstein and Warren (1987). The gates of a phi are the branches that decide which operand it takes, as in
the gated form of Ballance, Maccabe and Ottenstein (PLDI 1990).

Any operation may raise, and hardly any is meant to. So edges into handlers count for definitions and for dominators,
but no operation is control dependent on another one not raising; a path to the failure block stops the job and joins
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from spmdlint.core.dominance import immediate_dominators
from spmdlint.program.summary import (
    ENTRY,
    EXIT,
    FAILURE,
    Caught,
    Const,
    Delete,
    Function,
    Load,
    Next,
    Return,
    Store,
    ValueId,
)

Definition: TypeAlias = int
"""A store or return by its number; a phi by a number below :data:`NOTHING`."""
NOTHING: Definition = -1
"""The name has no value here; at the exit: the function returns None without saying so."""
RESULT = "<result>"
"""The name under which the values of returns reach the exit."""
_DECIDING = frozenset(("true", "false", "iterate", "exhausted"))


class Phi(Struct):
    """Where several definitions of a name meet: for each predecessor of the block, the definition along that edge."""

    block: int
    name: str
    operands: list[tuple[int, Definition]]
    number: int
    """Its position among the phis of the function."""

    @property
    def definitions(self) -> list[Definition]:
        """The definitions without repetition, in the order of the predecessors."""
        return list(dict.fromkeys(definition for _, definition in self.operands))


class Loop(Struct, frozen=True):
    """A natural loop: its header, its blocks (the header among them), and the blocks whose branches may leave it."""

    header: int
    blocks: frozenset[int]
    exits: tuple[int, ...]


class Clause(Struct, frozen=True):
    """One ``except`` of a try statement: its ``Caught`` operation, the block of that, and where the handler begins."""

    number: ValueId
    block: int
    target: int


class Try(Struct, frozen=True):
    """A try statement with handlers: the blocks from which an exception leads to its clauses, and these in order."""

    blocks: frozenset[int]
    clauses: tuple[Clause, ...]


class Ssa:
    """One function in SSA form. ``shared``: names that inner functions set, which are cells instead."""

    def __init__(self, function: Function, shared: Collection[str] = ()) -> None:
        self.function = function
        self.blocks = function.blocks
        self.successors = [list(dict.fromkeys([edge.target for edge in block.edges])) for block in self.blocks]
        self.predecessors: list[list[int]] = [[] for _ in self.blocks]
        for source, targets in enumerate(self.successors):
            for target in targets:
                self.predecessors[target].append(source)
        self.phis: list[Phi] = []
        """The phis; the one at position k is the definition ``NOTHING - 1 - k``."""
        self.loads: dict[ValueId, Definition] = {}
        """The definition of each load of a local name; loads of other names, and of shared ones, are left out."""
        self.result: Definition = NOTHING
        """What the function returns."""
        self._events = self._find_events(shared)
        self._place()

    def phi(self, definition: Definition) -> Phi | None:
        """The phi that a definition is; None for a store or return."""
        return self.phis[NOTHING - 1 - definition] if definition < NOTHING else None

    def block_of(self, definition: Definition) -> int:
        """The block of a definition."""
        phi = self.phi(definition)
        return phi.block if phi is not None else self.function.block_of[definition] if definition >= 0 else ENTRY

    # -- definitions

    def _find_events(self, shared: Collection[str]) -> dict[str, dict[int, list[tuple[int, Definition]]]]:
        """By name and block: when which definition begins to hold; a deletion makes it nothing."""
        function = self.function
        found: dict[str, dict[int, list[tuple[int, Definition]]]] = {}
        block_of = function.block_of
        for number, operation in enumerate(function.operations):
            if isinstance(operation, Store):
                name, definition = operation.name, number
            elif isinstance(operation, Return):
                name, definition = RESULT, number
            elif isinstance(operation, Delete) and operation.name is not None:
                name, definition = operation.name, NOTHING
            else:
                continue
            if name not in shared:
                found.setdefault(name, {}).setdefault(block_of[number], []).append((number, definition))
        hidden = function.globals | function.nonlocals
        return {name: events for name, events in found.items() if name not in hidden}

    def _place(self) -> None:
        """Find the definition of every load, and of the result."""
        self._at_starts: dict[tuple[int, str], Definition] = {}
        self._pending: list[Phi] = []
        block_of = self.function.block_of
        for number, operation in enumerate(self.function.operations):
            if type(operation) is Load and operation.name in self._events:
                self.loads[number] = self._before(operation.name, block_of[number], number)
        self.result = self._before(RESULT, EXIT, 0) if RESULT in self._events else NOTHING
        self.finals = {name: self._before(name, EXIT, 0) for name in self._events} if self._is_scope() else {}
        self._fill()
        self._simplify()

    def _is_scope(self) -> bool:
        """Whether the names at the end of the function can be read from elsewhere."""
        return self.function.kind in ("module", "class")

    def _before(self, name: str, block: int, number: int) -> Definition:
        """The definition that holds before an operation of a block; at the block's start for 0."""
        events = self._events[name].get(block, ()) if number else ()
        last = None
        for at, definition in events:
            if at < number:
                last = definition
        return self._at_start(name, block) if last is None else last

    def _at_end(self, name: str, block: int) -> Definition:
        events = self._events[name].get(block)
        return events[-1][1] if events else self._at_start(name, block)

    def _at_start(self, name: str, block: int) -> Definition:
        passed: list[int] = []
        while True:
            known = self._at_starts.get((block, name))
            if known is None:
                sources = self.predecessors[block]
                if not sources:
                    known = NOTHING
                elif len(sources) > 1 or self._raises(sources[0], block, name):
                    phi = Phi(block, name, [], len(self.phis))
                    self.phis.append(phi)
                    self._pending.append(phi)
                    known = NOTHING - len(self.phis)
                elif sources[0] in self._events[name]:
                    known = self._events[name][sources[0]][-1][1]
                elif block in passed:
                    known = NOTHING  # a cycle that nothing enters
                else:
                    passed.append(block)
                    block = sources[0]
                    continue
            for each in (block, *passed):
                self._at_starts[(each, name)] = known
            return known

    def _raises(self, source: int, block: int, name: str) -> bool:
        """Whether a block is entered from the middle of one that defines the name: what held before counts too."""
        return name in self._events and source in self._events[name] and self._is_caught(source, block)

    def _is_caught(self, source: int, block: int) -> bool:
        return any(edge.target == block and edge.kind == "except" for edge in self.blocks[source].edges)

    def _fill(self) -> None:
        while self._pending:
            phi = self._pending.pop()
            for source in self.predecessors[phi.block]:
                phi.operands.append((source, self._at_end(phi.name, source)))
                if self._raises(source, phi.block, phi.name):
                    phi.operands.append((source, self._at_start(phi.name, source)))

    def _simplify(self) -> None:
        """Remove phis that have only one definition besides themselves, and names that have none on some way."""
        instead: dict[Definition, Definition] = {}

        def final(definition: Definition) -> Definition:
            while definition in instead:
                definition = instead[definition]
            return definition

        changed = True
        while changed:
            changed = False
            for position, phi in enumerate(self.phis):
                own = NOTHING - 1 - position
                if own in instead:
                    continue
                others = {final(definition) for _, definition in phi.operands} - {own}
                if phi.name != RESULT:
                    others.discard(NOTHING)  # a read there would raise
                if len(others) <= 1:
                    instead[own] = others.pop() if others else NOTHING
                    changed = True
        for phi in self.phis:
            phi.operands = [(source, final(definition)) for source, definition in phi.operands]
        self.loads = {number: final(definition) for number, definition in self.loads.items()}
        self.result = final(self.result)
        self.finals = {name: final(definition) for name, definition in self.finals.items()}

    def origin(self, number: ValueId) -> ValueId:
        """The operation that made a value, if only names lie between; a name with several definitions is one itself."""
        operations = self.function.operations
        while True:
            operation = operations[number]
            if isinstance(operation, Store):
                number = operation.value
                continue
            definition = self.loads.get(number, NOTHING) if isinstance(operation, Load) else NOTHING
            if definition < 0:
                return number
            number = definition

    # -- gates and control dependence

    def gates(self, phi: Phi) -> tuple[int, ...]:
        """The blocks whose branches decide which operand a phi takes."""
        own = self.controlling(phi.block)
        found: dict[int, None] = {}
        for source, _ in phi.operands:
            for block in (*self.controlling(source), *((source,) if self.decides(source) else ())):
                if block not in own:
                    found[block] = None
        return tuple(found)

    def deciding(self, phi: Phi, same: Callable[[Definition], Hashable]) -> tuple[int, ...]:
        """The gates whose arms lead to different operands; ``same`` is equal for definitions with the same value."""
        return tuple([block for block in self.gates(phi) if self._separates(block, phi, same)])

    def _separates(self, block: int, phi: Phi, same: Callable[[Definition], Hashable]) -> bool:
        ways = [{same(d) for d in self.along(block, target, phi)} for target in self._usual[block]]
        guarded = self._guarded.get(block)
        if guarded is not None:  # the other way is that nothing is raised
            ways.append({same(d) for each in guarded.blocks for d in self.along(each, each, phi)})
        arms = [way for way in ways if way]
        return any(arm != arms[0] for arm in arms[1:])

    def along(self, block: int, target: int, phi: Phi) -> set[Definition]:
        """The operands that a phi may take if a branch goes to a target."""
        if target == phi.block:
            return {definition for source, definition in phi.operands if source == block}
        seen = {target}
        pending = [target]
        while pending:
            for each in self._usual[pending.pop()]:
                if each not in seen and each != phi.block:
                    seen.add(each)
                    pending.append(each)
        return {definition for source, definition in phi.operands if source in seen}

    def changes_in(self, definition: Definition, loop: Loop) -> bool:
        """Whether a definition inside a loop may differ from one round to the next."""
        phi = self.phi(definition)
        if phi is not None:
            return True
        operation = self.function.operations[definition] if definition >= 0 else None
        return isinstance(operation, Store) and type(self.function.operations[operation.value]) is not Const

    def decides(self, block: int) -> bool:
        """Whether a block ends in a branch."""
        found = self.blocks[block]
        if found.test is None or len(self.successors[block]) < 2:
            return False
        return type(self.function.operations[found.test]) is Caught or any(e.kind in _DECIDING for e in found.edges)

    def controlling(self, block: int) -> frozenset[int]:
        """The blocks whose branches decide whether this one runs, directly or through one another."""
        known = self._controlling.get(block)
        if known is None:
            found: set[int] = set()
            pending = list(self._control.get(block, ()))
            while pending:
                each = pending.pop()
                if each not in found:
                    found.add(each)
                    pending.extend(self._control.get(each, ()))
            known = self._controlling[block] = frozenset(found)
        return known

    @cached_property
    def _controlling(self) -> dict[int, frozenset[int]]:
        return {}

    @cached_property
    def _control(self) -> dict[int, list[int]]:
        """For each block, the branches that it is directly control dependent on."""
        found: dict[int, list[int]] = {}
        join = self._postdominators
        for block in range(len(self.blocks)):
            if not self.decides(block):
                continue
            guarded = self._guarded.get(block)
            until = join.get(block) if guarded is None else self.meeting(min(guarded.blocks), block)
            for target in self._usual[block]:
                each: int | None = target
                while each is not None and each != until and each in join:
                    controlled = found.setdefault(each, [])
                    if block not in controlled:
                        controlled.append(block)
                    if each == EXIT:
                        break
                    each = join.get(each)
                if each is not None and each not in join:
                    for failing in self._leading_nowhere(each, join):
                        found.setdefault(failing, []).append(block)
        return found

    def _leading_nowhere(self, start: int, join: Mapping[int, int]) -> list[int]:
        """The blocks from one on that lead to no exit: to an exception, or round and round."""
        found, pending = {start} - {FAILURE}, [start]
        while pending:
            for each in self._usual[pending.pop()]:
                if each not in found and each not in join and each != FAILURE:
                    found.add(each)
                    pending.append(each)
        return sorted(found)

    @cached_property
    def _usual(self) -> list[list[int]]:
        """The successors without those that an exception of any operation leads to."""
        operations = self.function.operations
        found: list[list[int]] = []
        for block in self.blocks:
            clause = block.test is not None and type(operations[block.test]) is Caught
            found.append(list(dict.fromkeys([e.target for e in block.edges if clause or e.kind != "except"])))
        return found

    @cached_property
    def _postdominators(self) -> dict[int, int]:
        sources: list[list[int]] = [[] for _ in self.blocks]
        for source, targets in enumerate(self._usual):
            for target in targets:
                sources[target].append(source)
        return immediate_dominators(EXIT, sources, self._usual, without=FAILURE)

    def join(self, block: int) -> int:
        """Where the arms of a branch meet: its immediate post-dominator."""
        return self._postdominators.get(block, EXIT)

    def usual(self, block: int) -> Sequence[int]:
        """The successors of a block if nothing in it raises."""
        return self._usual[block]

    # -- exceptions

    @cached_property
    def tries(self) -> tuple[Try, ...]:
        """The try statements that have handlers, inner ones before those around them."""
        found = []
        for head in range(len(self.blocks)):
            if not self._is_clause(head) or any(self._goes_on_at(each, head) for each in self.predecessors[head]):
                continue
            guarded = frozenset(each for each in self.predecessors[head] if self._is_caught(each, head))
            clauses: list[Clause] = []
            following: int | None = head
            while following is not None and self._is_clause(following):
                test, edges = self.blocks[following].test, self.blocks[following].edges
                assert test is not None
                clauses.append(Clause(test, following, next(e.target for e in edges if e.kind == "except")))
                following = next((e.target for e in edges if e.kind == "false"), None)
            if guarded:
                found.append(Try(guarded, tuple(clauses)))
        return tuple(sorted(found, key=lambda each: len(each.blocks)))

    def _goes_on_at(self, clause: int, block: int) -> bool:
        """Whether a block is where control goes if a clause does not fit."""
        return self._is_clause(clause) and any(
            e.kind == "false" and e.target == block for e in self.blocks[clause].edges
        )

    def _is_clause(self, block: int) -> bool:
        test = self.blocks[block].test
        return test is not None and type(self.function.operations[test]) is Caught

    @cached_property
    def _guarded(self) -> dict[int, Try]:
        """By the block of a clause, the try statement that it belongs to."""
        return {clause.block: each for each in self.tries for clause in each.clauses}

    def guarded_by(self, clause: int) -> Try | None:
        """The try statement to which the clause in a block belongs."""
        return self._guarded.get(clause)

    def meeting(self, one: int, other: int) -> int:
        """The first block that control comes to from both of two blocks, if nothing is raised."""
        passed = {one}
        while one != EXIT and one in self._postdominators:
            one = self._postdominators[one]
            passed.add(one)
        while other not in passed and other != EXIT:
            other = self._postdominators.get(other, EXIT)
        return other

    # -- dominators and what holds

    @cached_property
    def _dominators(self) -> dict[int, int]:
        return immediate_dominators(ENTRY, self.successors, self.predecessors)

    @cached_property
    def _intervals(self) -> Mapping[int, tuple[int, int]]:
        """For each block its position in a walk through the dominator tree, and the last position below it."""
        below: dict[int, list[int]] = {}
        for block, immediate in self._dominators.items():
            if block != immediate:
                below.setdefault(immediate, []).append(block)
        first: dict[int, int] = {}
        found: dict[int, tuple[int, int]] = {}
        stack = [(ENTRY, True)]
        while stack:
            block, entering = stack.pop()
            if entering:
                first[block] = len(first)
                stack.append((block, False))
                stack.extend((each, True) for each in below.get(block, ()))
            else:
                found[block] = (first[block], len(first) - 1)
        return found

    def dominates(self, one: int, other: int) -> bool:
        """Whether every path to the other block passes through the first."""
        begin, end = self._intervals.get(one, (0, -1))
        return begin <= self._intervals.get(other, (-1, -1))[0] <= end

    def branches_before(self, block: int) -> Iterator[tuple[int, bool]]:
        """The blocks with a true and a false edge of which every path to this block takes the same one, and which.

        The nearest comes first.
        """
        immediate = self._dominators
        each = block
        while immediate.get(each, each) != each:
            each = immediate[each]
            arms = self.arms(each)
            if arms is not None:
                for target, answer in zip(arms, (True, False), strict=True):
                    if self._leads(each, target, block):
                        yield each, answer

    def _leads(self, one: int, target: int, block: int) -> bool:
        if not self.dominates(target, block):
            return False
        others = (s for s in self.predecessors[target] if s != one and s in self._intervals)
        return all(self.dominates(target, source) for source in others)

    def arms(self, block: int) -> tuple[int, int] | None:
        """The targets for true and for false of a branch on a condition."""
        arms = {edge.kind: edge.target for edge in self.blocks[block].edges if edge.kind in ("true", "false")}
        return (arms["true"], arms["false"]) if len(arms) == 2 and self.blocks[block].test is not None else None

    # -- loops

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The natural loops, inner ones before those around them."""
        bodies: dict[int, set[int]] = {}
        for source, targets in enumerate(self.successors):
            for header in targets:
                if source in self._intervals and self.dominates(header, source):
                    body = bodies.setdefault(header, {header})
                    pending = [source]
                    while pending:
                        block = pending.pop()
                        if block not in body and block in self._intervals:
                            body.add(block)
                            pending.extend(self.predecessors[block])
        found = []
        for header, body in bodies.items():
            exits = [b for b in sorted(body) if self.decides(b) and any(t not in body for t in self._leaving(b))]
            found.append(Loop(header, frozenset(body), tuple(exits)))
        return tuple(sorted(found, key=lambda loop: len(loop.blocks)))

    def _leaving(self, block: int) -> list[int]:
        return [target for target in self._usual[block] if target != FAILURE]

    def loop_at(self, header: int) -> Loop | None:
        """The loop with this header."""
        return next((loop for loop in self.loops if loop.header == header), None)

    def left_between(self, definition: int, use: int) -> Iterator[Loop]:
        """The loops that contain the block of a definition and not that of a use."""
        for loop in self.loops:
            if definition in loop.blocks and use not in loop.blocks:
                yield loop

    # -- order

    @cached_property
    def goes_back(self) -> bool:
        """Whether any edge leads to a block that comes earlier in the order."""
        rank = {block: position for position, block in enumerate(self.order)}
        return any(rank[t] <= rank[b] for b in self.order for t in self.successors[b])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The blocks that control can reach, in reverse postorder."""
        seen = {ENTRY}
        out: list[int] = []
        stack = [(ENTRY, reversed(self.successors[ENTRY]))]
        while stack:
            block, targets = stack[-1]
            for target in targets:  # the last one first, so that the body of a loop comes before what follows the loop
                if target not in seen:
                    seen.add(target)
                    stack.append((target, reversed(self.successors[target])))
                    break
            else:
                stack.pop()
                out.append(block)
        return tuple(out[::-1])

    def iterates(self, block: int) -> ValueId | None:
        """The iterable of the loop whose header a block is; None for other blocks."""
        test = self.blocks[block].test
        operation = self.function.operations[test] if test is not None else None
        return operation.iterable if isinstance(operation, Next) else None
