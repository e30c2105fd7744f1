"""Rows drawn for this process's devices with a key that all processes share: every process draws the same rows.

The rows have the number of this process's devices in front, so that each device gets rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, certain
from spmdlint.analysis.inputs.hostkeys import KEY_DEPTH, KeySearch, RowCall, SharedSplit
from spmdlint.analysis.variance.arguments import argument_for
from spmdlint.analysis.variance.origins import Origins
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s

_DEPTH = 12
_RESHAPE = "reshape"
_ARRAYS = "jax.numpy."


def shared_draws(
    evaluator: Evaluator, table: Typing, content: Origins, calls: Iterable[RowCall]
) -> Iterator[SharedSplit]:
    """Every draw of such rows that one of the calls passes to a map over the devices of all processes."""
    search = _Draws(evaluator, table, content)
    for frame, given, call in calls:
        for argument in call.arguments:
            found = search.for_own_devices(frame, argument.value, _DEPTH)
            if found is not None:
                drawn, made = found
                yield SharedSplit(drawn, Site(frame.ref, given), made, draws=True)


class _Draws:
    def __init__(self, evaluator: Evaluator, table: Typing, content: Origins) -> None:
        self.ev = evaluator
        self.table = table
        self.keys = KeySearch(evaluator, content)

    def for_own_devices(self, frame: Frame, number: int, depth: int) -> tuple[Site, Site] | None:
        """Where rows for this process's devices are drawn, and where their key is made."""
        operation = frame.code.operations[number]
        if not depth:
            return None
        if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
            stores = sorted(self.ev.reaching(frame, number, operation.name))
            # What a step has returned in the round before was passed to it in the first round.
            found = (self.for_own_devices(frame, store, depth - 1) for store in stores)
            return next((each for each in found if each is not None), None)
        if isinstance(operation, s.Store):
            return self.for_own_devices(frame, operation.value, depth - 1)
        if not isinstance(operation, s.Call):
            return None
        given = [argument.value for argument in operation.arguments if argument.keyword is None]
        callee, method = certain(self.ev.value(frame, operation.function)), frame.code.operations[operation.function]
        if isinstance(callee, External) and self.table.exact.get(callee.name) == "draw":
            shape = passed(operation, "shape", ("key", "shape"))
            counts = shape is not None and self._leads_with_own(frame, shape)
            return self._drawn(frame, number, {}, depth) if counts else None
        if isinstance(callee, External) and callee.name == f"{_ARRAYS}{_RESHAPE}" and len(given) > 1:
            return self._drawn(frame, given[0], {}, depth) if self._leads_with_own(frame, given[1]) else None
        if isinstance(method, s.Attribute) and method.name == _RESHAPE and given:
            return self._drawn(frame, method.base, {}, depth) if self._leads_with_own(frame, given[0]) else None
        return None

    def _leads_with_own(self, frame: Frame, shape: int) -> bool:
        """Whether the first dimension of a shape is the number of this process's devices."""
        operation = frame.code.operations[resolved(self.ev, frame, shape)]
        if isinstance(operation, s.Binary) and operation.operator == "+":
            return self._leads_with_own(frame, operation.left)
        first = operation.elements[0] if isinstance(operation, s.Display) and operation.elements else shape
        value = certain(self.ev.value(frame, first))
        return isinstance(value, Applied) and value.name in self.table.rows.local_count

    def _drawn(
        self, frame: Frame, number: int, entered: dict[Frame, tuple[Frame, s.Call]], depth: int
    ) -> tuple[Site, Site] | None:
        """The draw that an array is made from, through arithmetic and the project's own functions."""
        number = frame.code.root_of(number)
        operation = frame.code.operations[number]
        if not depth:
            return None
        inner: list[tuple[Frame, int]] = []
        if isinstance(operation, s.Binary):
            inner = [(frame, operation.left), (frame, operation.right)]
        elif isinstance(operation, s.Call):
            callee = certain(self.ev.value(frame, operation.function))
            given = [argument.value for argument in operation.arguments]
            if isinstance(callee, External) and self.table.exact.get(callee.name) == "draw" and given:
                made = self._key(frame, given[0], entered)
                return (Site(frame.ref, number), made) if made is not None else None
            if isinstance(callee, External) and callee.name.startswith(_ARRAYS):
                inner = [(frame, each) for each in given]
            elif isinstance(callee, FunctionValue):
                inside = self.ev.entered_frame(callee, self.ev.arguments(frame, operation), frame.depth + 1)
                if inside is not None:
                    entered = {**entered, inside: (frame, operation)}
                    inner = [(inside, each.value) for _, each in inside.code.returns if each.value is not None]
        found = (self._drawn(where, each, entered, depth - 1) for where, each in inner)
        return next((each for each in found if each is not None), None)

    def _key(self, frame: Frame, number: int, entered: dict[Frame, tuple[Frame, s.Call]]) -> Site | None:
        """Where the key of a draw is made, the same on every process; in a caller, if it is passed."""
        operation = frame.code.operations[frame.code.root_of(number)]
        if isinstance(operation, s.Parameter) and frame in entered:
            caller, call = entered[frame]
            given = argument_for(self.ev, frame, operation.name, call, caller)
            return self._key(*given, entered) if given is not None else None
        return self.keys.made(frame, number, KEY_DEPTH)
