"""Whether what a call was given is used afterwards: itself, a part of it, or what was made of it.

A reduction whose result nobody reads is harmless if its argument is not used again, or only reduced once more: the
call is timed, or made to compile a program. What is asked of a value's shape or size is no use of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs


class Place(Struct, frozen=True):
    """A name, or a field of what it stands for; the stores that may be the last ones to a local name."""

    load: int
    stores: frozenset[int]
    path: tuple[str, ...]

    def meets(self, other: Place) -> bool:
        """Whether the value at one of two places may be the other's, or a part of it."""
        shorter = min(len(self.path), len(other.path))
        return self.path[:shorter] == other.path[:shorter] and (
            bool(self.stores & other.stores) or self.stores == other.stores
        )


class Afterwards:
    """Follows the values that one call is given through the rest of its function."""

    def __init__(self, evaluator: Evaluator, frame: Frame, number: int, excused: Callable[[int], bool]) -> None:
        self.ev = evaluator
        self.frame = frame
        self.number = number
        self.excused = excused
        self.given: tuple[Place, ...] = ()
        self.made: set[int] = set()
        """The stores of what was made of the given values."""

    def uses(self, values: tuple[int, ...]) -> bool:
        """Whether any of the values that the call is given is used after it, except by calls that are excused."""
        self.given = tuple(place for value in values for place in self._places(value))
        if not self.given:
            return False
        stores = [(number, store.value) for number, store in self.frame.code.of_kind(s.Store)]
        while True:
            found = {number for number, value in stores if number not in self.made and self._is_made(value, False)}
            if not found:
                break
            self.made |= found
        return any(
            number != self.number and not self.excused(number) and self._comes_after(number)
            for number, sunk in self._sinks()
            if any(self._is_made(value, True) for value in sunk)
        )

    def _sinks(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The operations by which a value leaves the function's own names, each with the values that it takes."""
        for number, operation in enumerate(self.frame.code.operations):
            if isinstance(operation, s.Call):
                yield number, (operation.function, *inputs(operation))
            elif isinstance(operation, (s.Return, s.Yield, s.StoreAttribute, s.StoreSubscript)):
                yield number, () if operation.value is None else (operation.value,)

    def _is_made(self, number: int, later: bool) -> bool:
        """Whether a value is one that the call was given, or is made of one; ``later``: as it is after the call."""
        properties = reading().properties
        pending, seen = [number], set[int]()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            operation = self.frame.code.operations[number]
            if isinstance(operation, s.Call):
                if not self.excused(number):
                    pending += [operation.function, *inputs(operation)]
                continue
            if isinstance(operation, s.Attribute) and operation.name in properties:
                continue
            place = self._place(number)
            if place is None:
                pending += inputs(operation)
                continue
            made = any(map(place.meets, self.given)) or not place.stores.isdisjoint(self.made)
            if made and (not later or self._lives(place)):
                return True
        return False

    def _lives(self, place: Place) -> bool:
        """Whether a load after the call may read what was there at the call, and not what the next round put there."""
        load, stores = place.load, place.stores
        if not self._comes_after(load):
            return False
        block_of = self.frame.code.function.block_of
        here, there = block_of[self.number], block_of[load]
        if not stores or (here == there and load > self.number):
            return True
        flow = self.frame.code.flow
        return any(
            not (block_of[store] == there and store < load)
            and any(there in flow.reachable(after, without=block_of[store]) for after in flow.successors[here])
            for store in stores
        )

    def _comes_after(self, number: int) -> bool:
        """Whether an operation may run after the call."""
        block_of = self.frame.code.function.block_of
        here, there = block_of[self.number], block_of[number]
        if here == there and number > self.number:
            return True
        return any(there in self.frame.code.flow.reachable(after) for after in self.frame.code.flow.successors[here])

    # -- places

    def _places(self, number: int) -> Iterator[Place]:
        """The places whose values an argument holds."""
        place = self._place(number)
        if place is not None:
            yield place

    def _place(self, number: int) -> Place | None:
        """The place that a name or a field is; None for any other value."""
        operations, path = self.frame.code.operations, list[str]()
        operation = operations[number]
        while isinstance(operation, s.Attribute):
            path.append(operation.name)
            number = operation.base
            operation = operations[number]
        if not isinstance(operation, s.Load):
            return None
        name, local = operation.name, self.frame.code.function.binds(operation.name)
        stores = self.ev.reaching(self.frame, number, name) if local else frozenset[int]()
        return Place(number, stores, (name, *reversed(path)))
