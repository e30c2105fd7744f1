"""Whether the last of the slices into which a loop cuts some rows may be short: tried with a few numbers.

``rows[i : i + n]`` for ``i in range(0, end, n)`` is shorter for the last ``i`` unless the end is rounded down, or
something in the loop passes over what is short. Whatever way that is written, it is computed from how many rows there
are, the size of a slice, and where it begins; so these get small numbers, and the rest is arithmetic.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.folding import ARITHMETIC, COMPARISONS
from spmdlint.analysis.evaluation.values import Frame, deed
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_ROWS, _SIZES = range(4, 12), (2, 3, 4)
"""The numbers of rows, and the sizes of a slice, that are tried."""
_DEPTH = 12


class LastSlice:
    """The slices that one subscript takes in a loop over ``range(start, end, size)``."""

    def __init__(self, evaluator: Evaluator, frame: Frame, window: int, begin: int, span: tuple[int, int, int]) -> None:
        self.ev = evaluator
        self.frame = frame
        self.window = window
        self.begin = begin
        self.start, self.end, size = span
        self.size = self._key(size)
        self.rows = 0
        self.whole: object = None
        self.given: dict[object, int] = {}

    def may_be_short(self, at: int) -> bool:
        """Whether a slice of another size than the others may come to the block ``at``."""
        if self.size is None:
            return True
        guards = list(self.frame.code.flow.answers_before(at))
        for self.rows in _ROWS:
            for size in _SIZES:
                self.given = {self.size: size}
                start, end = self._value(self.start), self._value(self.end)
                if start is None or end is None:
                    return not self._concerns(self.end)  # without the size, it cannot be rounded
                for begin in range(start, end, size):
                    self.given[self.begin] = begin
                    if self._is_short() and all(self._lets_pass(each.test, each.holds) for each in guards):
                        return True
        return False

    def _is_short(self) -> bool:
        cut = self._slice()
        upper = self._value(cut.upper) if cut.upper is not None else None
        return upper is None or min(upper, self._length(self._base()) or 0) != upper

    def _lets_pass(self, test: int, wanted: bool) -> bool:
        """Whether the slice passes a branch; a condition on sizes that cannot be computed is taken to stop it."""
        answer = self._value(test)
        return not self._concerns(test) if answer is None else bool(answer) == wanted

    def _concerns(self, number: int) -> bool:
        """Whether a value is made of the size of a slice, where it begins, or the slice itself."""
        pending, seen = [number], set[int]()
        while pending:
            number = resolved(self.ev, self.frame, pending.pop())
            if number in (self.window, self.begin) or self._key(number) == self.size:
                return True
            if number not in seen:
                seen.add(number)
                pending += inputs(self.frame.code.operations[number])
        return False

    # -- numbers

    def _value(self, number: int, depth: int = _DEPTH) -> int | None:
        number = resolved(self.ev, self.frame, number)
        known = self.given.get(number, self.given.get(self._key(number)))
        if known is not None or depth == 0:
            return known
        operation = self.frame.code.operations[number]
        if isinstance(operation, s.Const):
            return operation.value if isinstance(operation.value, int) else None
        if isinstance(operation, s.Binary):
            return self._applied(operation.operator, operation.left, operation.right, depth)
        if isinstance(operation, s.Compare) and len(operation.operators) == 1:
            left, right = operation.operands
            return self._applied(operation.operators[0], left, right, depth)
        return self._called(operation) if isinstance(operation, s.Call) else None

    def _applied(self, operator: str, left: int, right: int, depth: int) -> int | None:
        one, other = self._value(left, depth - 1), self._value(right, depth - 1)
        apply = ARITHMETIC.get(operator) or COMPARISONS.get(operator)
        if one is None or other is None or apply is None or (operator in ("//", "%") and not other):
            return None
        return int(apply(one, other))

    def _called(self, call: s.Call) -> int | None:
        counts = deed(self.ev.callee(self.frame, call)) == "length" and call.arguments
        return self._length(call.arguments[0].value) if counts else None

    # -- rows

    def _slice(self) -> s.Slice:
        operation = self.frame.code.operations[self.window]
        cut = self.frame.code.operations[operation.index] if isinstance(operation, s.Subscript) else None
        assert isinstance(cut, s.Slice)
        return cut

    def _base(self) -> int:
        operation = self.frame.code.operations[self.window]
        assert isinstance(operation, s.Subscript)
        return operation.base

    def _length(self, number: int) -> int | None:
        """How many rows a value has: the slice, what it is a slice of, or the first rows of that."""
        number = resolved(self.ev, self.frame, number)
        operation = self.frame.code.operations[number]
        cut = self.frame.code.operations[operation.index] if isinstance(operation, s.Subscript) else None
        if isinstance(operation, s.Subscript) and isinstance(cut, s.Slice) and cut.step is None:
            inside = self._length(operation.base)
            lower = 0 if cut.lower is None else self._value(cut.lower)
            upper = inside if cut.upper is None else self._value(cut.upper)
            if inside is not None and lower is not None and upper is not None:
                return max(len(range(inside)[lower:upper]), 0)
            if self._origin() != self._key(number):
                return None
        return self.rows if self._key(number) == self._origin() else None

    def _origin(self) -> object:
        """What has the number of rows that is tried: what is cut, or what that is the first rows of."""
        if self.whole is None:
            number = resolved(self.ev, self.frame, self._base())
            operation = self.frame.code.operations[number]
            while isinstance(operation, s.Subscript):
                cut = self.frame.code.operations[operation.index]
                if not isinstance(cut, s.Slice) or cut.lower is not None or cut.step is not None:
                    break
                number = resolved(self.ev, self.frame, operation.base)
                operation = self.frame.code.operations[number]
            self.whole = self._key(number)
        return self.whole

    def _key(self, number: int) -> object:
        """What two operations have in common that certainly have the same value."""
        number = resolved(self.ev, self.frame, number)
        operation = self.frame.code.operations[number]
        if isinstance(operation, s.Load):
            return operation.name if not self.frame.code.function.binds(operation.name) else number
        if isinstance(operation, s.Attribute):
            return (self._key(operation.base), operation.name)
        return (operation.value,) if isinstance(operation, s.Const) else number
