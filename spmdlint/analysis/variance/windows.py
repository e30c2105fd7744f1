"""The length of ``x[a:b]`` on each process: windows that move with the process, and windows that differ in length.

A window of one length has that length wherever it lies. Its length differs on some processes if its end was chosen by
process index, so that one of them gets the remainder, or if the parts are rounded up and the last one runs over the
end.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.elements import Place, elements
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, deed
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

_ROUNDING_UP = frozenset(names("rounding_up"))
_ROUNDING = frozenset(names("rounding_off"))
_DEPTH = 8
JOINED = frozenset(("append", "concatenate", "hstack", "vstack"))
"""Functions that concatenate arrays."""


class Windows:
    """Compares the two ends of a slice. ``content`` says which values differ between processes."""

    def __init__(self, content: Origins) -> None:
        self.content = content
        self.ev = content.ev
        self.conditions = content.ev.once(Conditions)

    def differs(self, frame: Frame, lower: int, upper: int, *, cut: bool) -> Reason | None:
        """Why the number of elements between two ends differs on some processes, if it certainly does.

        ``cut``: what lies past the end of the data is left out, as a slice does and a range does not.
        """
        inside = self._returned(frame, lower, upper)
        if inside is not None:
            return self.differs(*inside, cut=cut)
        ends = self._alternatives(frame, upper)
        if len(ends) > 1:
            chosen = self._chosen(frame, upper)
            if chosen is None or chosen.kind not in ("identity", "group"):
                return None
            return chosen if any(self._length(frame, lower, end) is not None for end in ends) else None
        end = self.uncapped(frame, ends[0])
        length = self._length(frame, lower, end)
        if length is None:
            return None
        found = self.content.why(frame, length)
        return found or (self._rounded_up(frame, lower, length) if cut or end != ends[0] else None)

    def _returned(self, frame: Frame, lower: int, upper: int) -> tuple[Frame, int, int] | None:
        """The ends in the function that returns both: ``start, end = share(rows)``."""
        places: list[Place] = []
        for end in (lower, upper):
            item = frame.code.operations[resolved(self.ev, frame, end)]
            if not isinstance(item, s.Item) or item.star:
                return None
            places += elements(self.ev, frame, item.value, item.index)
        (where, first), (there, last) = places if len(places) == 2 else ((frame, lower), (frame, upper))
        return (where, first, last) if where is there and where is not frame else None

    def follows(self, frame: Frame, lower: int, upper: int) -> bool:
        """Whether a possible end is at a known distance from the start; another one may take the rest."""
        inside = self._returned(frame, lower, upper)
        if inside is not None:
            return self.follows(*inside)
        return any(
            self._length(frame, lower, self.uncapped(frame, end)) is not None
            for end in self._alternatives(frame, upper)
        )

    def divides(self, frame: Frame, end: int, parts: int) -> bool:
        """Whether an end is a multiple of a number: ``n - n % parts`` or ``n // parts * parts`` leave no remainder."""
        operations = self.ev.function(frame).operations
        made = operations[resolved(self.ev, frame, end)]
        if not isinstance(made, s.Binary):
            return False
        for one, other in ((made.left, made.right), (made.right, made.left)):
            inner = operations[resolved(self.ev, frame, other)]
            if not isinstance(inner, s.Binary) or not self.conditions.same(frame, inner.right, parts):
                continue
            if made.operator == "-" and inner.operator == "%" and self._as_many(frame, inner.left, one):
                return True
            if made.operator == "*" and inner.operator == "//" and self.conditions.same(frame, one, parts):
                return True
        return False

    def _as_many(self, frame: Frame, one: int, other: int) -> bool:
        """Whether two numbers in one expression are equal, including the length of one object written twice."""
        first, second = (self.ev.function(frame).operations[resolved(self.ev, frame, n)] for n in (one, other))
        if isinstance(first, s.Call) and isinstance(second, s.Call) and len(first.arguments) == 1:
            alike = self.ev.value(frame, first.function) == self.ev.value(frame, second.function)
            if alike and len(second.arguments) == 1 and self.ev.may_do(frame, first, "length"):
                one, other = first.arguments[0].value, second.arguments[0].value
        return self.conditions.same(frame, one, other)

    def _rounded_up(self, frame: Frame, lower: int, length: int) -> Reason | None:
        place = self.content.why(frame, lower)
        if (
            place is None
            or place.kind != "identity"
            or not _rounds_up(self.ev, frame, resolved(self.ev, frame, length))
        ):
            return None
        return self.content.step(frame, length, "it is rounded up, so the last process's part is short", place)

    def _alternatives(self, frame: Frame, number: int) -> list[int]:
        """The possible values of an operation, if a branch chose one of them."""
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.IfExp):
            return [operation.body, operation.orelse]
        if isinstance(operation, s.Load):
            values = self._stored(frame, number, operation)
            if len(values) == 1 and values[0] != number:
                return self._alternatives(frame, values[0])
            return values
        return [number]

    def _stored(self, frame: Frame, number: int, load: s.Load) -> list[int]:
        function = self.ev.function(frame)
        if not function.binds(load.name):
            return [number]
        stores = [function.operations[n] for n in sorted(self.ev.reaching(frame, number, load.name))]
        values = [store.value for store in stores if isinstance(store, s.Store)]
        return values if values and len(values) == len(stores) else [number]

    def _chosen(self, frame: Frame, number: int) -> Reason | None:
        """Why the choice between several ends varies: the reason of the branch."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        if isinstance(operation, s.IfExp):
            return self.content.why(frame, operation.test)
        if not isinstance(operation, s.Load):
            return None
        values = self._stored(frame, number, operation)
        if len(values) == 1:
            return self._chosen(frame, values[0]) if values[0] != number else None
        stores = sorted(self.ev.reaching(frame, number, operation.name))
        places = list(zip(stores, values, strict=True))
        block = function.block_of[number]
        return self.content.property.chosen(self.content, frame, repr(operation.name), places, block)

    def uncapped(self, frame: Frame, end: int) -> int:
        """The value of ``end`` in ``min(end, n)``."""
        call = self.ev.function(frame).operations[resolved(self.ev, frame, end)]
        if not isinstance(call, s.Call) or len(call.arguments) != 2 or any(a.keyword for a in call.arguments):
            return end
        if self.ev.may_do(frame, call, "minimum"):
            return call.arguments[0].value
        return end

    def _length(self, frame: Frame, lower: int, upper: int) -> int | None:
        """The value that is the length of a slice: ``n`` for ``a:a + n``, and for ``r * n:(r + 1) * n``."""
        operations = self.ev.function(frame).operations
        end = operations[resolved(self.ev, frame, upper)]
        if not isinstance(end, s.Binary):
            return None
        if end.operator == "+":
            for one, other in ((end.left, end.right), (end.right, end.left)):
                if self.conditions.same(frame, one, lower):
                    return other
        start = operations[resolved(self.ev, frame, lower)]
        if end.operator == "*" and isinstance(start, s.Binary) and start.operator == "*":
            for place, size in ((start.left, start.right), (start.right, start.left)):
                for after, again in ((end.left, end.right), (end.right, end.left)):
                    if self.conditions.same(frame, size, again) and self._next(frame, place, after):
                        return size
        return None

    def _next(self, frame: Frame, place: int, after: int) -> bool:
        """Whether ``after`` equals ``place`` plus one."""
        operations = self.ev.function(frame).operations
        sums = operations[resolved(self.ev, frame, after)]
        if not isinstance(sums, s.Binary) or sums.operator != "+":
            return False
        for one, other in ((sums.left, sums.right), (sums.right, sums.left)):
            step = operations[other]
            if isinstance(step, s.Const) and step.value == 1 and self.conditions.same(frame, one, place):
                return True
        return False


def resolved(ev: Evaluator, frame: Frame, number: int) -> int:
    """The value that a name refers to, if it was given only one value."""
    function = ev.function(frame)
    for _ in range(_DEPTH):
        operation = function.operations[number]
        if not isinstance(operation, s.Load) or not function.binds(operation.name):
            return number
        stores = [function.operations[n] for n in ev.reaching(frame, number, operation.name)]
        if len(stores) != 1 or not isinstance(stores[0], s.Store):
            return number
        number = stores[0].value
    return number


def leading(ev: Evaluator, frame: Frame, shape: int) -> int:
    """The first dimension of a shape as it is written, ``(n, *rest)`` or ``(n,) + x.shape``; the number itself."""
    operation = frame.code.operations[resolved(ev, frame, shape)]
    if isinstance(operation, s.Binary) and operation.operator == "+":
        return leading(ev, frame, operation.left)
    written = isinstance(operation, s.Display) and bool(operation.elements) and 0 not in operation.starred
    return operation.elements[0] if isinstance(operation, s.Display) and written else shape


def _rounds_up(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether a value is ``-(-n // p)``, ``(n + p - 1) // p`` or ``ceil(n / p)``."""
    operations = ev.function(frame).operations
    operation = operations[number]
    if isinstance(operation, s.Unary) and operation.operator == "-":
        inner = operations[operation.operand]
        if not isinstance(inner, s.Binary) or inner.operator != "//":
            return False
        negated = operations[inner.left]
        return isinstance(negated, s.Unary) and negated.operator == "-"
    if isinstance(operation, s.Binary) and operation.operator == "//":
        more = operations[operation.left]
        if not isinstance(more, s.Binary) or more.operator != "-":
            return False
        one, total = operations[more.right], operations[more.left]
        added = isinstance(total, s.Binary) and total.operator == "+"
        return added and isinstance(one, s.Const) and one.value == 1
    if isinstance(operation, s.Call) and len(operation.arguments) == 1:
        if ev.may_call(frame, operation, *_ROUNDING):
            return _rounds_up(ev, frame, operation.arguments[0].value)
        return ev.may_call(frame, operation, *_ROUNDING_UP)
    return False


def cut_by(ev: Evaluator, frame: Frame, index: int) -> s.Slice | None:
    """The slice that an index is: ``x[a:b:c]``, or ``x[mine]`` with ``mine = slice(a, b, c)``; None if it is none."""
    operation = frame.code.operations[index]
    if isinstance(operation, s.Slice):
        return operation
    call = frame.code.operations[resolved(ev, frame, index)] if isinstance(operation, (s.Load, s.Call)) else None
    if not isinstance(call, s.Call) or any(argument.keyword or argument.star for argument in call.arguments):
        return None
    callee = ev.callee(frame, call)
    if not isinstance(callee, External) or deed(callee) != "slice" or not 1 <= len(call.arguments) <= 3:
        return None
    ends = [_end(frame, argument.value) for argument in call.arguments]
    return s.Slice(ends[0], ends[1], ends[2] if len(ends) == 3 else None)


def _end(frame: Frame, number: int) -> int | None:
    """An argument of `slice`, in which None stands for an end that is left out."""
    operation = frame.code.operations[number]
    return None if isinstance(operation, s.Const) and operation.value is None else number


def are_complements(origins: Origins, frame: Frame, number: int) -> bool:
    """Whether several of the joined arrays vary because of one source: their total may be the same everywhere."""
    parts = frame.code.operations[frame.code.root_of(number)]
    if not isinstance(parts, s.Display):
        return False
    sources = [found.source.site for each in parts.elements if (found := origins.why(frame, each)) is not None]
    return len(set(sources)) < len(sources)
