"""What fixes an order: ``sorted(...)`` around what has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through
from spmdlint.analysis.evaluation.values import Collection, Constant, External, Frame, Site, Values, certain
from spmdlint.analysis.variance.origins import Origins
from spmdlint.changes import Wrap
from spmdlint.diagnostics import Applicability, Edit, Fix, Place
from spmdlint.program import summary as s

_SORTED = "sorted"
_MESSAGE = "Sort it."
_DEPTH = 8


class _Contents(NamedTuple):
    """The elements of one collection, each with what it may be; ``whole``: there are certainly no others."""

    elements: list[Values]
    whole: bool = True


class Mending:
    """Finds the expression to sort. One per run."""

    def __init__(self, evaluator: Evaluator, sets: Origins, place: Callable[[Site], Place]) -> None:
        self.ev = evaluator
        self.sets = sets
        self.place = place

    def of_set(self, iterable: Site) -> Fix | None:
        """The fix that sorts what is iterated over from a set: safe if all elements are known strings or numbers.

        None if it is known that they cannot be sorted.
        """
        frame = self.ev.free_frame(iterable.ref)
        number = self._target(frame, iterable.number)
        if number is None or self._shadowed(frame):
            return None
        call = self.ev.function(frame).operations[number]
        inner = self._only_argument(frame, call, "builtins.list")
        contents = list(self._contents(frame, number))
        if not all(map(_sortable, contents)):
            return None
        safe = bool(contents) and all(each.whole and _alike(each.elements) for each in contents)
        if isinstance(call, s.Call) and inner is not None:  # list(x) becomes sorted(x), and no list within a list
            at = self._place(frame, call.function)
            return Fix("safe" if safe else "unsafe", _MESSAGE, (Edit(at.start, at.end, _SORTED),))
        return self._sorted(frame, number, "safe" if safe else "unsafe")

    def sorting(self, iterable: Site) -> str:
        """The call that sorts what is iterated over from a set."""
        frame = self.ev.free_frame(iterable.ref)
        number = self._target(frame, iterable.number)
        known = number is None or all(map(_sortable, self._contents(frame, number)))
        return "sorted(...)" if known else "sorted(..., key=repr)"

    def of_listing(self, source: Site) -> Fix | None:
        """The fix that sorts a listing where it is made: safe if it is a list of strings."""
        frame = self.ev.free_frame(source.ref)
        call = self.ev.function(frame).operations[source.number]
        if not isinstance(call, s.Call) or self._shadowed(frame):
            return None
        names = [value.name for value in ordered(self.ev.value(frame, call.function)) if isinstance(value, External)]
        if not names:  # a method of a path, which yields paths one by one
            return self._sorted(frame, source.number, "unsafe")
        known = self.ev.knowledge.get(names[0])
        if known is None or not known.gives_strings:
            return None
        return self._sorted(frame, source.number, "safe")

    def _target(self, frame: Frame, number: int, depth: int = _DEPTH) -> int | None:
        """The value to sort: inside everything that passes elements on in the order in which it gets them."""
        operation = self.ev.function(frame).operations[number]
        inside: list[int] | None = None
        if isinstance(operation, s.Display) and operation.kind != "set":
            inside = [operation.elements[position] for position in operation.starred]
        elif isinstance(operation, s.Collected) and operation.kind != "set":
            loops = [self.ev.function(frame).operations[loop] for loop in operation.loops]
            inside = [loop.iterable for loop in loops if isinstance(loop, s.Next)]
        elif isinstance(operation, s.Binary) and operation.operator == "+":
            inside = [operation.left, operation.right]
        elif isinstance(operation, s.Call) and (passed_on := self._passed_on(frame, operation)):
            if self._only_argument(frame, operation, "builtins.list") is not None:
                return number
            inside = passed_on
        if inside is None:
            plain = (s.Load, s.Attribute, s.Call, s.Subscript, s.Binary, s.Display, s.Collected)
            return number if isinstance(operation, plain) else None
        unordered = [each for each in inside if self.sets.why(frame, each) is not None]
        return self._target(frame, unordered[0], depth - 1) if len(unordered) == 1 and depth else None

    def _passed_on(self, frame: Frame, call: s.Call) -> list[int]:
        """The arguments whose elements a call gives in the order in which it gets them."""
        callee = self.ev.callee(frame, call)
        given = through(self.ev.knowledge, callee.name, call, "order") if isinstance(callee, External) else ()
        return list(given)

    def _only_argument(self, frame: Frame, operation: s.Operation, maker: str) -> int | None:
        """The only argument of a call such as ``list(x)``; None if there is not exactly one."""
        if not isinstance(operation, s.Call) or len(operation.arguments) != 1:
            return None
        (argument,) = operation.arguments
        plain = argument.keyword is None and not argument.star
        return argument.value if plain and self.ev.may_call(frame, operation, maker) else None

    def _contents(self, frame: Frame, number: int, depth: int = _DEPTH) -> Iterator[_Contents]:
        """What is in each of the collections that an operation may be."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        makers = ("builtins.list", "builtins.set", "builtins.frozenset")
        inner = (self._only_argument(frame, operation, maker) for maker in makers)
        inside = [each for each in inner if each is not None]
        if depth == 0:
            yield _Contents([], whole=False)
        elif isinstance(operation, s.Display) and not operation.starred:
            yield _Contents([self.ev.value(frame, each) for each in operation.elements])
        elif isinstance(operation, s.Load) and function.binds(operation.name):
            for store in self.ev.reaching(frame, number, operation.name):
                yield from self._contents(frame, store, depth - 1)
        elif isinstance(operation, s.Store):
            yield from self._contents(frame, operation.value, depth - 1)
        elif inside:
            yield from self._contents(frame, inside[0], depth - 1)
        else:
            for value in ordered(self.ev.value(frame, number)):
                known = value if isinstance(value, Collection) else Collection("set", (), open=True)
                yield _Contents(list(known.elements), not known.open)

    def _shadowed(self, frame: Frame) -> bool:
        """Whether the file defines its own ``sorted``."""
        return _SORTED in self.ev.project.modules[frame.ref.path].top.stores or self.ev.function(frame).binds(_SORTED)

    def _sorted(self, frame: Frame, number: int, applicability: Applicability) -> Fix:
        return Fix(applicability, _MESSAGE, change=Wrap(*_ends(self._place(frame, number)), _SORTED))

    def _place(self, frame: Frame, number: int) -> Place:
        return self.place(Site(frame.ref, number))


def _ends(place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
    return (place.start.row, place.start.column), (place.end.row, place.end.column)


def _alike(elements: Sequence[Values]) -> bool:
    """Whether these are all strings, or all numbers."""
    values = [value for each in elements for value in each]
    constants = [value.value for value in values if isinstance(value, Constant)]
    if not values or len(constants) < len(values):
        return False
    return all(isinstance(one, str) for one in constants) or all(isinstance(one, (int, float)) for one in constants)


def _sortable(contents: _Contents) -> bool:
    """Whether the elements that are certain can be compared with one another; the others may be anything."""
    constants = [certain(each) for each in contents.elements]
    literals = [each.value for each in constants if isinstance(each, Constant)]
    try:
        for position, one in enumerate(literals):
            _ = [one < other for other in literals[:position]]  # type: ignore[operator]  # that is the question
    except TypeError:
        return False
    return True
