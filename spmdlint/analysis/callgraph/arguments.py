"""What the arguments of a call reveal: the devices it is for, their number, the axes it binds."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, External, Frame, Free, Unknown, Values, constant
from spmdlint.knowledge.files import names
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s

_DEPTH = 6
_ARRAYS = frozenset(names("device_arrays"))


def device_count(ev: Evaluator, applied: Applied, parameter: str) -> int | None:
    """The number of devices that are passed for a parameter; None if it is not written out."""
    frame = ev.free_frame(applied.site.ref)
    call = frame.code.operations[applied.site.number]
    known = ev.knowledge.get(applied.name)
    given = passed(call, parameter, known.positional) if isinstance(call, s.Call) and known is not None else None
    return _count(ev, frame, given, _DEPTH) if given is not None else None


def _count(ev: Evaluator, frame: Frame, number: int, depth: int) -> int | None:
    root = frame.code.root_of(number)
    operation = frame.code.operations[root]
    if isinstance(operation, s.Call) and operation.arguments and depth > 0:
        callees = ev.value(frame, operation.function)
        listed = all(isinstance(callee, External) and callee.name in _ARRAYS for callee in callees)
        return _count(ev, frame, operation.arguments[0].value, depth - 1) if callees and listed else None
    cut = frame.code.operations[operation.index] if isinstance(operation, s.Subscript) else None
    if not isinstance(operation, s.Subscript) or not isinstance(cut, s.Slice) or cut.upper is None:
        return None
    devices = ev.value(frame, operation.base)
    if not devices or not all(isinstance(each, Applied) and each.name in units().lists for each in devices):
        return None
    first = constant(ev.value(frame, cut.lower)) if cut.lower is not None else None
    last = constant(ev.value(frame, cut.upper))
    start = first.value if first is not None else 0 if cut.lower is None else None
    end = last.value if last is not None else None
    if cut.step is not None or type(start) is not int or type(end) is not int or not 0 <= start < end:
        return None
    return end - start


_STEP = re.compile(r"^p_|pmap|parallel|step|update|train|eval")


def unknown_map(frame: Frame, call: s.Call, callees: Values, is_for_all: Callable[[Frame, int], bool]) -> str | None:
    """The name of an unknown function that must be a map over all devices; None otherwise.

    It is named like a training step, and it is passed an array with one row per local device, or one over the devices
    of several processes, as far as ``is_for_all`` knows; or its name alone says so.
    """
    called = frame.code.operations[call.function]
    if not isinstance(called, (s.Load, s.Attribute)) or _STEP.search(called.name) is None:
        return None
    if not all(isinstance(callee, (Unknown, Free)) for callee in callees):
        return None
    found = "pmap" in called.name or any(is_for_all(frame, argument.value) for argument in call.arguments)
    return called.name if found else None


def by_arguments(evaluator: Evaluator, frame: Frame, call: s.Call) -> External | None:
    """The library method that a call runs, if one of its arguments is made for that method's class alone."""
    method = frame.code.operations[call.function]
    if not isinstance(method, s.Attribute) or not call.arguments:
        return None
    if not all(isinstance(callee, (Unknown, Free)) for callee in evaluator.value(frame, call.function)):
        return None
    for argument in call.arguments:
        for value in ordered(evaluator.value(frame, argument.value)):
            known = evaluator.knowledge.get(value.name) if isinstance(value, Applied) else None
            if known is not None and known.given_to:
                return External(f"{known.given_to}.{method.name}")
    return None


class Axes(Struct, frozen=True):
    """Axis names; ``open`` if there may be others. ``sizes``: pairs of a name and a possible size, None if unknown."""

    names: frozenset[str] = frozenset()
    open: bool = False
    sizes: frozenset[tuple[str, int | None]] = frozenset()

    def __or__(self, other: Axes) -> Axes:
        found = Axes(self.names | other.names, self.open or other.open, self.sizes | other.sizes)
        return self if found == self else found

    def __and__(self, names: frozenset[str]) -> Axes:
        """The axes whose name is one of these."""
        return Axes(self.names & names, self.open, frozenset(pair for pair in self.sizes if pair[0] in names))

    def sizes_of(self, name: str) -> frozenset[int]:
        """The sizes that an axis may have; none if one of them is unknown."""
        found = {size for axis, size in self.sizes if axis == name}
        return frozenset(size for size in found if size is not None) if None not in found else frozenset()


NO_AXES = Axes()
ANY_AXES = Axes(open=True)
