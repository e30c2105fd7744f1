"""What fixes an order: ``sorted(...)`` around what has none."""

from __future__ import annotations

from collections.abc import Callable

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Collection, Constant, External, Frame, Site, Values
from spmdlint.analysis.order.sets import LISTERS
from spmdlint.analysis.variance.origins import Origins
from spmdlint.changes import RemoveKeyword, Wrap
from spmdlint.diagnostics import Applicability, Edit, Fix, Place
from spmdlint.program import summary as s

_SORTED = "sorted"
_MESSAGE = "Sort it."
_DEPTH = 8


class Mending:
    """Finds the expression to sort. One per run."""

    def __init__(self, evaluator: Evaluator, sets: Origins, place: Callable[[Site], Place]) -> None:
        self.ev = evaluator
        self.sets = sets
        self.place = place

    def of_set(self, iterable: Site) -> Fix | None:
        """The fix that sorts what is iterated over from a set: safe if all elements are known strings or numbers."""
        frame = self.ev.free_frame(iterable.ref)
        number = self._target(frame, iterable.number)
        if number is None or self._shadowed(frame):
            return None
        call = self.ev.function(frame).operations[number]
        inner = self._only_argument(frame, call, "builtins.list")
        safe = self._orderable(frame, number)
        if isinstance(call, s.Call) and inner is not None:  # list(x) becomes sorted(x), and no list within a list
            at = self._place(frame, call.function)
            return Fix("safe" if safe else "unsafe", _MESSAGE, (Edit(at.start, at.end, _SORTED),))
        return self._sorted(frame, number, "safe" if safe else "unsafe")

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

    def without_key(self, source: Site) -> Fix | None:
        """The fix that drops the key of ``sorted(x, key=id)``: the elements must be comparable themselves."""
        frame = self.ev.free_frame(source.ref)
        function = self.ev.function(frame)
        call = function.operations[source.number]
        if not isinstance(call, s.Call) or len(call.arguments) != 2 or call.arguments[1].keyword != "key":
            return None
        change = RemoveKeyword(*_ends(self._place(frame, source.number)), "key")
        return Fix("unsafe", "Sort by the elements themselves.", change=change)

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
        elif isinstance(operation, s.Call) and self._calls(frame, operation, LISTERS):
            if self._only_argument(frame, operation, "builtins.list") is not None:
                return number
            inside = [argument.value for argument in operation.arguments]
        if inside is None:
            plain = (s.Load, s.Attribute, s.Call, s.Subscript, s.Binary, s.Display, s.Collected)
            return number if isinstance(operation, plain) else None
        unordered = [each for each in inside if self.sets.of(frame, each) is not None]
        return self._target(frame, unordered[0], depth - 1) if len(unordered) == 1 and depth else None

    def _calls(self, frame: Frame, call: s.Call, names: frozenset[str]) -> bool:
        return any(isinstance(v, External) and v.name in names for v in self.ev.value(frame, call.function))

    def _only_argument(self, frame: Frame, operation: s.Operation, maker: str) -> int | None:
        """The only argument of a call such as ``list(x)``; None if there is not exactly one."""
        if not isinstance(operation, s.Call) or len(operation.arguments) != 1:
            return None
        (argument,) = operation.arguments
        plain = argument.keyword is None and not argument.star
        return argument.value if plain and self._calls(frame, operation, frozenset((maker,))) else None

    def _orderable(self, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
        """Whether all elements are certainly strings, or certainly numbers, so that sorting them cannot fail."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        if depth == 0:
            return False
        if isinstance(operation, s.Display) and not operation.starred:
            return _alike([value for n in operation.elements for value in self.ev.value(frame, n)])
        if isinstance(operation, s.Load) and function.binds(operation.name):
            stores = self.ev.reaching(frame, number, operation.name)
            return bool(stores) and all(self._orderable(frame, store, depth - 1) for store in stores)
        if isinstance(operation, s.Store):
            return self._orderable(frame, operation.value, depth - 1)
        for maker in ("builtins.list", "builtins.set", "builtins.frozenset"):
            inner = self._only_argument(frame, operation, maker)
            if inner is not None:
                return self._orderable(frame, inner, depth - 1)
        return _closed(self.ev.value(frame, number))

    def _shadowed(self, frame: Frame) -> bool:
        """Whether the file defines its own ``sorted``."""
        return _SORTED in self.ev.project.modules[frame.ref.path].top.stores or self.ev.function(frame).binds(_SORTED)

    def _sorted(self, frame: Frame, number: int, applicability: Applicability) -> Fix:
        return Fix(applicability, _MESSAGE, change=Wrap(*_ends(self._place(frame, number)), _SORTED))

    def _place(self, frame: Frame, number: int) -> Place:
        return self.place(Site(frame.ref, number))


def _ends(place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
    return (place.start.row, place.start.column), (place.end.row, place.end.column)


def _closed(values: Values) -> bool:
    """Whether these are collections whose elements are all known and of one type."""
    return bool(values) and all(
        isinstance(value, Collection)
        and not value.open
        and _alike([each for element in value.elements for each in element])
        for value in values
    )


def _alike(values: list[object]) -> bool:
    constants = [value.value for value in values if isinstance(value, Constant)]
    if not values or len(constants) < len(values):
        return False
    return all(isinstance(one, str) for one in constants) or all(isinstance(one, (int, float)) for one in constants)
