"""The number of devices that a map or a mesh is passed, if it is written out: ``jax.devices()[:4]``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, constant
from spmdlint.program import summary as s

_DEPTH = 6
_ARRAYS = frozenset(("numpy.array", "numpy.asarray", "builtins.list", "builtins.tuple"))
_DEVICES = frozenset(("jax.devices", "jax.local_devices"))


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
    if not devices or not all(isinstance(each, Applied) and each.name in _DEVICES for each in devices):
        return None
    first = constant(ev.value(frame, cut.lower)) if cut.lower is not None else None
    last = constant(ev.value(frame, cut.upper))
    start = first.value if first is not None else 0 if cut.lower is None else None
    end = last.value if last is not None else None
    if cut.step is not None or type(start) is not int or type(end) is not int or not 0 <= start < end:
        return None
    return end - start
