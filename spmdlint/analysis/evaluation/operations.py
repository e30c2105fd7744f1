"""Indexes the operations of one function by kind: most queries concern a few of them, and many queries are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar, get_args

from spmdlint.program import summary as s
from spmdlint.program.sharing import shared

Kind = TypeVar("Kind")
_FILLERS = frozenset(("append", "extend", "insert", "setdefault", "update"))
_CODES: dict[type, int] = {kind: code for code, kind in enumerate(get_args(s.Operation))}
_NO_CALLS: Mapping[int, s.Call] = {}
_NO_NAMES: frozenset[str] = frozenset()
"""A shared empty set: many functions have no operation of some kind, and each would have an empty set."""


class Operations:
    """Finds operations without scanning all of them. One per run and function.

    What every function needs is in slots, because there are many functions; what few need is in ``__dict__``.
    """

    __slots__ = ("__dict__", "_each", "function", "operations")

    def __init__(self, function: s.Function) -> None:
        self.function = function
        self.operations = function.operations
        self._each: dict[tuple[type, ...], tuple[int, ...]] = {}

    @cached_property
    def kinds(self) -> bytes:
        """The kind of each operation as one byte: searching these is faster than any table, and they are small."""
        return bytes(map(_CODES.__getitem__, map(type, self.operations)))

    def numbers_of(self, kind: type) -> Iterator[int]:
        """The numbers of the operations of a kind, in source order."""
        kinds, code = self.kinds, _CODES[kind]
        number = kinds.find(code)
        while number >= 0:
            yield number
            number = kinds.find(code, number + 1)

    def of_kind(self, kind: type[Kind]) -> Iterator[tuple[int, Kind]]:
        """The operations of a kind, in source order."""
        operations: list[Any] = self.operations
        kinds, code = self.kinds, _CODES[kind]
        number = kinds.find(code)
        while number >= 0:
            yield number, operations[number]
            number = kinds.find(code, number + 1)

    def each(self, kinds: tuple[type[Kind], ...]) -> Iterator[tuple[int, int, Kind]]:
        """The operations of some kinds in the order of the blocks: the block, the number, the operation."""
        numbers = self._each.get(kinds)
        block_of = self.function.block_of
        if numbers is None:
            found = [number for kind in kinds for number in self.numbers_of(kind)]
            if not found:  # the most frequent case: not worth an entry
                return
            found.sort(key=lambda number: (block_of[number], number))  # numbers increase within a block
            numbers = self._each[kinds] = tuple(found)
        operations: list[Any] = self.operations
        for number in numbers:
            yield block_of[number], number, operations[number]

    def in_blocks(self, kinds: tuple[type[Kind], ...]) -> tuple[tuple[int, ...], ...]:
        """The numbers of the operations of some kinds in each block, in order."""
        found: list[list[int]] = [[] for _ in self.function.blocks]
        block_of = self.function.block_of
        for number in sorted(n for kind in kinds for n in self.numbers_of(kind)):
            found[block_of[number]].append(number)
        return tuple([shared(tuple(numbers)) for numbers in found])

    def calls_named(self, names: frozenset[str]) -> Mapping[int, s.Call]:
        """The calls whose callee's name ends in one of these names, by the number of the call."""
        if names.isdisjoint(self._called_names):
            return _NO_CALLS
        found = self._named.get(names)
        if found is None:
            calls = self.of_kind(s.Call)
            found = {number: call for number, call in calls if self._last_name(call.function) in names}
            self._named[names] = found
        return found

    @cached_property
    def _named(self) -> dict[frozenset[str], dict[int, s.Call]]:
        return {}

    @cached_property
    def _mentioned(self) -> dict[frozenset[str], bool]:
        return {}

    @cached_property
    def _called_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([self._last_name(call.function) for _, call in self.of_kind(s.Call)]))

    def mentions(self, names: frozenset[str]) -> bool:
        """Whether the function reads one of these names, or an attribute of such a name."""
        found = self._mentioned.get(names)
        if found is None:
            asked, read = self.of_kind(s.Attribute), self.of_kind(s.Load)
            found = any(o.name in names for _, o in asked) or any(o.name in names for _, o in read)
            self._mentioned[names] = found
        return found

    def _last_name(self, number: int) -> str:
        operation = self.operations[number]
        return operation.name if isinstance(operation, (s.Attribute, s.Load)) else ""

    @cached_property
    def filling(self) -> dict[str, list[int]]:
        """The operations that put something into the value of a name, by the name."""
        found: dict[str, list[int]] = {}
        for number, filled in self.fillings:
            base = self.operations[filled]
            if isinstance(base, s.Load):
                found.setdefault(base.name, []).append(number)
        return found

    @cached_property
    def fillings(self) -> tuple[tuple[int, int], ...]:
        """The operations that put something into a list or dictionary, in source order, each with that collection."""
        found = [(number, operation.base) for number, operation in self.of_kind(s.StoreSubscript)]
        for number, call in self.of_kind(s.Call):
            method = self.operations[call.function]
            if isinstance(method, s.Attribute) and method.name in _FILLERS:
                found.append((number, method.base))
        for number, binary in self.of_kind(s.Binary):
            right = self.operations[binary.right]
            if binary.inplace and binary.operator == "+" and isinstance(right, (s.Display, s.Collected)):
                found.append((number, binary.left))
        return tuple(sorted(found))

    @cached_property
    def extensions(self) -> tuple[tuple[int, int, int], ...]:
        """The operations that extend a collection by all elements of a value, with the collection and the value."""
        found: list[tuple[int, int, int]] = []
        for number, call in self.of_kind(s.Call):
            method = self.operations[call.function]
            if isinstance(method, s.Attribute) and method.name == "extend" and len(call.arguments) == 1:
                found.append((number, method.base, call.arguments[0].value))
        for number, binary in self.of_kind(s.Binary):
            if binary.inplace and binary.operator == "+":
                found.append((number, binary.left, binary.right))
        return tuple(sorted(found))

    @cached_property
    def extending(self) -> dict[str, list[tuple[int, int, int]]]:
        """The :attr:`extensions` of the value of a name, by the name."""
        by_name: dict[str, list[tuple[int, int, int]]] = {}
        for each in self.extensions:
            base = self.operations[each[1]]
            if isinstance(base, s.Load):
                by_name.setdefault(base.name, []).append(each)
        return by_name

    def _puts_sorted(self, put: s.StoreSubscript) -> bool:
        """Whether a sorted list takes the place of all elements of a list."""
        index, value = self.operations[put.index], self.operations[put.value]
        if not isinstance(index, s.Slice) or (index.lower, index.upper, index.step) != (None, None, None):
            return False
        function = self.operations[value.function] if isinstance(value, s.Call) else None
        return isinstance(function, s.Load) and function.name == "sorted"

    @cached_property
    def sorted_names(self) -> frozenset[str]:
        """The names whose value is sorted in place: by its ``sort`` method, or as in ``names[:] = sorted(names)``."""
        bases = [self.operations[o.base] for _, o in self.of_kind(s.Attribute) if o.name == "sort"]
        bases += [self.operations[o.base] for _, o in self.of_kind(s.StoreSubscript) if self._puts_sorted(o)]
        return frozenset(base.name for base in bases if isinstance(base, s.Load)) or _NO_NAMES
