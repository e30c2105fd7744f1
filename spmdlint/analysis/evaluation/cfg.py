"""Queries on a function's control-flow graph: predecessors, dominance both ways, reaching definitions.

Dominators come from the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001);
on the reversed graph the result is the post-dominators.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from spmdlint.program.sharing import shared
from spmdlint.program.summary import ENTRY, EXIT, FAILURE, Caught, Declare, Delete, Function, Store, ValueId

_NONE: frozenset[ValueId] = frozenset()


class Answer(Struct, frozen=True):
    """The answer of the condition of a branch: the block that asks, the condition, and the block it leads to."""

    block: int
    test: int
    target: int
    holds: bool


_TURNING = ("back", "continue")
"""The kinds of edges that lead back to the header of a loop."""


class Flow:
    """The control-flow graph of one function, and what is computed from it on demand."""

    __slots__ = ("__dict__", "_reaching", "function", "predecessors", "successors")

    def __init__(self, function: Function) -> None:
        self.function = function
        targets = (dict.fromkeys([edge.target for edge in block.edges]) for block in function.blocks)
        self.successors = [shared(tuple(each)) for each in targets]
        predecessors: list[list[int]] = [[] for _ in function.blocks]
        for source, following in enumerate(self.successors):
            for target in following:
                predecessors[target].append(source)
        self.predecessors = tuple([shared(tuple(each)) for each in predecessors])
        self._reaching: dict[tuple[int, str], frozenset[ValueId]] = {}

    # -- caches for queries; most functions get no queries

    @cached_property
    def _last(self) -> dict[str, dict[int, ValueId]]:
        return {}

    @cached_property
    def _bodies(self) -> dict[int, frozenset[int]]:
        return {}

    @cached_property
    def _guarded(self) -> dict[tuple[int, int], frozenset[int]]:
        return {}

    # -- reaching definitions

    def reaching(self, number: ValueId, name: str) -> frozenset[ValueId]:
        """The stores to a local name that may be the last one before an operation."""
        block = self.function.block_of[number]
        stores = self._stores_of(name)
        before = bisect_left(stores, number)
        # The operations of a block follow one another, so no store of another block lies between.
        if before and self.function.block_of[stores[before - 1]] == block:
            return frozenset((stores[before - 1],))
        return self._at_start(block, name)

    def _stores_of(self, name: str) -> Sequence[ValueId]:
        """The stores to a name, in source order, without those that only declare it."""
        numbers = self.function.stores.get(name, ())
        if not self._declares:
            return numbers
        operations = self.function.operations
        return [number for number in numbers if type(operations[number]) is Store]

    @cached_property
    def _declares(self) -> bool:
        """Whether the function only declares any name, as in ``x: int``."""
        return any(type(operation) is Declare for operation in self.function.operations)

    def at_end(self, name: str) -> frozenset[ValueId]:
        """The stores to a name that may be the last one when the function returns."""
        return self._at_start(EXIT, name)

    @cached_property
    def _deleted(self) -> dict[str, list[ValueId]]:
        """The operations that delete each name."""
        found: dict[str, list[ValueId]] = {}
        for number, operation in enumerate(self.function.operations):
            if type(operation) is Delete and operation.name is not None:
                found.setdefault(operation.name, []).append(number)
        return found

    @cached_property
    def _only_stores(self) -> dict[str, frozenset[ValueId]]:
        """The store of each name that is stored exactly once and never deleted."""
        counted = ((name, self._stores_of(name)) for name in self.function.stores)
        once = ((name, stores) for name, stores in counted if len(stores) == 1 and name not in self._deleted)
        return {name: shared(frozenset(stores)) for name, stores in once}

    @cached_property
    def _after(self) -> list[int]:
        """The blocks reachable from each block, as the bits of a number."""
        after = [0] * len(self.successors)
        pending = list(range(len(after)))
        while pending:
            block = pending.pop()
            found = 0
            for target in self.successors[block]:
                found |= after[target] | (1 << target)
            if found != after[block]:
                after[block] = found
                pending += self.predecessors[block]
        return after

    def _at_start(self, block: int, name: str) -> frozenset[ValueId]:
        key = (block, name)
        only = self._only_stores.get(name)
        if only is not None and key not in self._reaching:
            (store,) = only
            comes = self._after[self.function.block_of[store]] >> block & 1
            self._reaching[key] = only if comes else _NONE
        if key not in self._reaching:
            self._reaching[key] = self._last_before(block, name, lambda source, _: True)
        return self._reaching[key]

    def _last_before(self, block: int, name: str, takes: Callable[[int, int], bool]) -> frozenset[ValueId]:
        """The stores that may be the last one before a block, along the edges that ``takes`` admits."""
        found: set[ValueId] = set()
        seen = {block}
        last_stores = self._last_stores(name)
        pending = [source for source in self.predecessors[block] if takes(source, block)]
        while pending:
            current = pending.pop()
            if current in seen and current != block:
                continue
            seen.add(current)
            last = last_stores.get(current)
            if last is not None:
                found.add(last)
            elif current != block:
                pending.extend(source for source in self.predecessors[current] if takes(source, current))
        return shared(frozenset(found)) if found else _NONE

    def reaching_by(self, number: ValueId, name: str, takes: Callable[[int, int], bool]) -> frozenset[ValueId]:
        """The stores of :meth:`reaching` that remain if control only takes the edges that ``takes`` admits."""
        return self._last_before(self.function.block_of[number], name, takes)

    def _last_stores(self, name: str) -> dict[int, ValueId]:
        """The store to a name that is in effect at the end of each block."""
        found = self._last.get(name)
        if found is None:
            block_of = self.function.block_of
            found = self._last[name] = {block_of[number]: number for number in self._stores_of(name)}
            for number in self._deleted.get(name, ()):
                if found.get(block_of[number], number) < number:
                    del found[block_of[number]]
        return found

    # -- order and regions

    def reachable(self, start: int = ENTRY, without: int | None = None) -> set[int]:
        """The blocks reachable from a block, including itself, without passing through ``without``."""
        found: set[int] = set()
        pending = [start]
        while pending:
            block = pending.pop()
            if block in found or block == without:
                continue
            found.add(block)
            pending.extend(self.successors[block])
        return found

    def reachable_by(self, start: int, takes: Callable[[int, int], bool]) -> set[int]:
        """The blocks reachable from a block, including itself, along the edges that ``takes`` admits."""
        found: set[int] = set()
        pending = [start]
        while pending:
            block = pending.pop()
            if block not in found:
                found.add(block)
                pending.extend(target for target in self.successors[block] if takes(block, target))
        return found

    def guarded(self, block: int, arm: int) -> frozenset[int]:
        """The blocks reachable from one arm of a branch before its arms join."""
        key = (block, arm)
        if key not in self._guarded:
            self._guarded[key] = shared(frozenset(self.reachable(arm, without=self.joins_at(block))))
        return self._guarded[key]

    def order(
        self,
        start: int,
        without: int | None = None,
        closed: frozenset[tuple[int, int]] = frozenset(),
        *,
        caught: bool = False,
    ) -> list[int]:
        """The blocks from ``start`` up to ``without`` in reverse postorder: as they run, with each loop run once.

        ``closed`` edges are not taken. Paths that only an exception takes are left out: any call may raise, and hardly
        any is meant to. ``caught``: an exception raised by a `raise` statement is followed into its handlers.
        """
        seen: set[int] = set()
        out: list[int] = []
        stack: list[tuple[int, int]] = [(start, 0)]
        if start == without:
            return []
        seen.add(start)
        while stack:
            block, position = stack[-1]
            edges = self.function.blocks[block].edges
            if position < len(edges):
                stack[-1] = (block, position + 1)
                edge = edges[
                    -1 - position
                ]  # what is visited last comes first: the body of a loop before what follows it
                followed = edge.kind != "except" or (caught and self.is_clause(block))
                taken = followed and (block, edge.target) not in closed
                if taken and edge.target not in seen and edge.target != without:
                    seen.add(edge.target)
                    stack.append((edge.target, 0))
            else:
                stack.pop()
                out.append(block)
        return out[::-1]

    def is_clause(self, block: int) -> bool:
        """Whether a block decides if a handler catches an exception."""
        test = self.function.blocks[block].test
        return test is not None and isinstance(self.function.operations[test], Caught)

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """The blocks of every loop, by its header."""
        edges = (edge for block in self.function.blocks for edge in block.edges)
        headers = sorted({edge.target for edge in edges if edge.kind in _TURNING})
        return {header: body for header in headers if (body := self.loop_body(header))}

    def loop_body(self, header: int) -> frozenset[int]:
        """The blocks of the loop at a header: those from which control can come back to it without leaving the loop."""
        if header not in self._bodies:
            self._bodies[header] = shared(frozenset(self._loop_body(header)))
        return self._bodies[header]

    def _loop_body(self, header: int) -> set[int]:
        body: set[int] = set()
        inside = self.reachable_from_edges(header, ("iterate", "true", "next"))
        # Leaving an inner loop leads back into it, through its entry, in the next iteration of the outer one.
        pending = [p for p in self.predecessors[header] if p in inside and self._comes_back(p, header)]
        while pending:
            block = pending.pop()
            if block in body or block == header:
                continue
            body.add(block)
            pending.extend(p for p in self.predecessors[block] if p in inside)
        return body

    def loops_around(self, block: int) -> list[int]:
        """The headers of the loops that have a block in their bodies, that of the innermost first."""
        return [header for _, header in sorted((len(body), h) for h, body in self.loops.items() if block in body)]

    def leaves(self, block: int, header: int) -> bool:
        """Whether one arm of a branch leaves the loop at a header and the other stays in it."""
        body = self.loop_body(header)
        arms = [edge.target for edge in self.function.blocks[block].edges if edge.kind in ("true", "false")]
        return block in body and len({arm in body or arm == header for arm in arms}) == 2

    def _comes_back(self, block: int, header: int) -> bool:
        edges = self.function.blocks[block].edges
        return any(edge.target == header and edge.kind in _TURNING for edge in edges)

    def reachable_from_edges(self, header: int, kinds: tuple[str, ...]) -> set[int]:
        """The blocks reachable from a block by edges of these kinds, without passing through the block again."""
        found: set[int] = set()
        for edge in self.function.blocks[header].edges:
            if edge.kind in kinds:
                found |= self.reachable(edge.target, without=header)
        return found

    # -- post-dominance

    def joins_at(self, block: int) -> int:
        """The immediate post-dominator: the first block that every path from here passes through.

        A path that ends in an exception stops the job and does not count, unless there is no other.
        """
        return self._postdominators.get(block, EXIT)

    @cached_property
    def _postdominators(self) -> dict[int, int]:
        """The immediate dominators in the reversed graph, from the exit; without blocks that only lead to a failure."""
        if not (endless := self._endless()):
            return immediate_dominators(EXIT, self.predecessors, self.successors, without=FAILURE)
        ends, after = [list(each) for each in self.predecessors], [list(each) for each in self.successors]
        ends[EXIT] += endless
        for header in endless:
            after[header].append(EXIT)
        return immediate_dominators(EXIT, ends, after, without=FAILURE)

    def _endless(self) -> list[int]:
        """The headers of loops that only a failure ends: they count as left, as a branch in them has arms that meet.

        A loop inside such a loop is none of them if it leads back to that.
        """
        left, endless = self._leading_to(EXIT) if self.loops else set[int](), list[int]()
        for header in sorted(self.loops, key=lambda each: -len(self.loops[each])):
            if header not in left:
                endless.append(header)
                left |= self._leading_to(header)
        return sorted(endless)

    def _leading_to(self, end: int) -> set[int]:
        """The blocks from which there is a way to a block, itself among them."""
        found, pending = {FAILURE, end}, [end]
        while pending:
            new = [block for block in self.predecessors[pending.pop()] if block not in found]
            found.update(new)
            pending += new
        return found

    def dominators_of(self, block: int) -> Iterator[int]:
        """The strict dominators of a block, nearest first; none for an unreachable block."""
        immediate = self._dominators
        while immediate.get(block, block) != block:
            block = immediate[block]
            yield block

    def dominates(self, one: int, other: int) -> bool:
        """Whether the first block dominates the other, or is the same one."""
        first, last = self._dominated.get(one, (0, -1))
        return first <= self._dominated.get(other, (-1, -1))[0] <= last

    def answers_before(self, block: int) -> Iterator[Answer]:
        """The answers that conditions must have had on every path to a block, nearest first."""
        for number in self.dominators_of(block):
            test = self.function.blocks[number].test
            for edge in self.function.blocks[number].edges if test is not None else ():
                if test is not None and edge.kind in ("true", "false") and self.leads(number, edge.target, block):
                    yield Answer(number, test, edge.target, edge.kind == "true")

    def leads(self, one: int, target: int, block: int) -> bool:
        """Whether every path to a block takes the edge from one block to its target."""
        if not self.dominates(target, block):
            return False
        others = (source for source in self.predecessors[target] if source != one and source in self._dominated)
        return all(self.dominates(target, source) for source in others)

    @cached_property
    def _dominated(self) -> dict[int, tuple[int, int]]:
        """For each block, its position in a walk through the dominator tree, and the last position below it."""
        below: dict[int, list[int]] = {}
        for block, immediate in self._dominators.items():
            if block != immediate:
                below.setdefault(immediate, []).append(block)
        found: dict[int, tuple[int, int]] = {}
        stack = [(ENTRY, True)]
        while stack:
            block, entering = stack.pop()
            if entering:
                found[block] = (len(found), -1)
                stack.append((block, False))
                stack.extend((each, True) for each in below.get(block, ()))
            else:
                found[block] = (found[block][0], len(found) - 1)
        return found

    @cached_property
    def _dominators(self) -> dict[int, int]:
        """The immediate dominator of each reachable block."""
        return immediate_dominators(ENTRY, self.successors, self.predecessors)

    def on_every_way(self) -> set[int]:
        """The blocks that every path through the function passes through."""
        found: set[int] = set()
        block = ENTRY
        while block not in found:
            found.add(block)
            block = self.joins_at(block)
        return found


def immediate_dominators(
    root: int, targets: Sequence[Sequence[int]], sources: Sequence[Sequence[int]], without: int | None = None
) -> dict[int, int]:
    """The immediate dominator of each block that is reachable from the root; the root's is the root itself.

    ``targets`` and ``sources`` are the successors and predecessors of each block. Blocks that are unreachable from the
    root, or reachable only through ``without``, are not in the result.
    """
    order = _reverse_postorder(root, targets, without)
    rank = {block: position for position, block in enumerate(order)}
    immediate = {root: root}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new: int | None = None
            for source in sources[block]:
                if source in immediate:
                    new = source if new is None else _meet(new, source, immediate, rank)
            if new is not None and immediate.get(block) != new:
                immediate[block] = new
                changed = True
    return immediate


def _meet(a: int, b: int, immediate: Mapping[int, int], rank: Mapping[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = immediate[a]
        while rank[b] > rank[a]:
            b = immediate[b]
    return a


def _reverse_postorder(start: int, targets: Sequence[Sequence[int]], without: int | None) -> list[int]:
    seen = {start}
    out: list[int] = []
    stack: list[tuple[int, int]] = [(start, 0)]
    while stack:
        block, position = stack[-1]
        if position < len(targets[block]):
            stack[-1] = (block, position + 1)
            target = targets[block][position]
            if target not in seen and target != without:
                seen.add(target)
                stack.append((target, 0))
        else:
            stack.pop()
            out.append(block)
    return out[::-1]
