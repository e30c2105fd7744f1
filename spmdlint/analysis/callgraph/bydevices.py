"""Resolves an unknown function by its arguments: only a map takes arrays with one row per local device.

A function that takes an array over the devices of several processes computes on all of them. Trainers receive their
step function as a parameter, and the linter often sees no caller: ``p_step(state, shard(batch))``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Collection,
    External,
    Frame,
    Free,
    FunctionValue,
    Unknown,
    Value,
    Values,
    certain,
)
from spmdlint.program import summary as s

_DEPTH = 12
_STEP = re.compile(r"^p_|pmap|parallel|step|update|train|eval")
_COUNT = "jax.local_device_count"
_SHAPERS = ("jax.numpy.reshape", "numpy.reshape")


def unknown_map(
    evaluator: Evaluator, frame: Frame, call: s.Call, callees: Values, spans: Callable[[Frame, int], bool] | None = None
) -> str | None:
    """The name of an unknown function that must be a map over all devices; None otherwise.

    It is named like a training step, and it is passed an array with one row per local device, or one over the devices
    of several processes, as far as ``spans`` knows; or its name alone says so.
    """
    called = frame.code.operations[call.function]
    if not isinstance(called, (s.Load, s.Attribute)) or _STEP.search(called.name) is None:
        return None
    if not all(isinstance(callee, (Unknown, Free)) for callee in callees):
        return None
    if "pmap" in called.name:
        return called.name
    rows, given = Rows(evaluator), [argument.value for argument in call.arguments]
    found = any(rows.are(frame, value) or (spans is not None and spans(frame, value)) for value in given)
    return called.name if found else None


class Rows:
    """Decides whether values have one row per local device."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def are(self, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
        """Whether a value, as far as it can be followed, is certainly made with such rows."""
        return self._are(frame, number, depth, set())

    def _are(self, frame: Frame, number: int, depth: int, seen: set[int]) -> bool:
        """The same; an operation that is reached again in a loop does not count against it."""
        if depth == 0 or number in seen:
            return depth > 0
        seen.add(number)
        operation = frame.code.operations[number]
        if isinstance(operation, s.Load):
            stores = self.ev.reaching(frame, number, operation.name)
            return bool(stores) and all(self._are(frame, store, depth, seen) for store in stores)
        if isinstance(operation, (s.Item, s.Store)):
            return self._are(frame, operation.value, depth - 1, seen)
        if isinstance(operation, s.Subscript):
            return self._are(frame, operation.base, depth - 1, seen)
        if isinstance(operation, s.Collected):
            return self._are(frame, operation.element, depth - 1, seen)
        return isinstance(operation, s.Call) and self._made(frame, operation, depth)

    def _made(self, frame: Frame, call: s.Call, depth: int) -> bool:
        callees = self.ev.value(frame, call.function)
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and method.name == "reshape" and self._counts(frame, call, 0):
            return True
        return bool(callees) and all(self._makes(frame, call, callee, depth) for callee in callees)

    def _makes(self, frame: Frame, call: s.Call, callee: Value, depth: int) -> bool:
        if isinstance(callee, FunctionValue):
            return self._returns(callee, depth)
        if not isinstance(callee, External):
            return False
        if callee.name in _SHAPERS or callee.name == "jax.random.split":
            return self._counts(frame, call, 1)
        known = self.ev.knowledge.get(callee.name)
        if known is None:
            return False
        if known.kind == "apply" and known.leaves is not None and call.arguments:
            mapped = certain(self.ev.value(frame, call.arguments[0].value))
            return mapped is not None and self._makes(frame, call, mapped, depth - 1)
        return known.per_device

    def _returns(self, function: FunctionValue, depth: int) -> bool:
        if depth <= 0 or self.ev.project.function(function.ref).generator:
            return False
        inside = self.ev.entered_frame(function, Arguments(open=True), 1)
        if inside is None:
            return False
        returned = [o.value for _, o in inside.code.of_kind(s.Return) if o.value is not None]
        return bool(returned) and all(self.are(inside, n, depth - 2) for n in returned)

    def _counts(self, frame: Frame, call: s.Call, position: int) -> bool:
        """Whether this argument is the number of local devices, or a shape that begins with it."""
        if len(call.arguments) <= position or call.arguments[position].star:
            return False
        number = call.arguments[position].value
        shape = frame.code.operations[number]
        if isinstance(shape, s.Binary) and shape.operator == "+":
            number = shape.left
        given = certain(self.ev.value(frame, number))
        if isinstance(given, Collection) and given.elements and given.kind != "set":
            given = certain(given.elements[0])
        return isinstance(given, Applied) and given.name == _COUNT
