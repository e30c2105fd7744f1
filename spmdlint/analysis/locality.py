"""What stays on one process: maps over its own devices, and arrays that it made for itself."""

from __future__ import annotations

from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.values import Applied, Collection, External, Frame, Member, Value
from spmdlint.program import summary as s

_DEPTH = 6
_PLACES = ("device", "backend", "devices")
# Called outside of jit, these make an array on this process alone.
_MAKERS: tuple[str, ...] = ("jax.random.", "numpy.", "jax.device_get", "jax.local_devices")
_MAKERS += tuple(f"jax.numpy.{name}" for name in "zeros ones full array asarray arange eye".split())


def on_local_devices(value: Value, depth: int = _DEPTH) -> bool:
    """Is a map or jit given devices that are this process's own, or one device or backend by name."""
    if not isinstance(value, Applied) or depth == 0:
        return False
    if value.name == "jax.local_devices":
        return True
    inside = [*value.arguments.positional, *(v for _, v in value.arguments.keywords)]
    for name, values in value.arguments.keywords:
        if name in ("device", "backend") and all(isinstance(v, (Applied, Member, External)) for v in values):
            return True
        if name in _PLACES and any(getattr(v, "value", None) == "cpu" for v in values):
            return True
    parts = [part for values in inside for part in values]
    parts += [p for part in parts if isinstance(part, Collection) for e in part.elements for p in e]
    return any(on_local_devices(part, depth - 1) for part in parts)


def local_data(evaluator: Evaluator, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
    """Does a value surely live on this process alone: fetched, addressed, or made here."""
    if depth == 0:
        return False
    function = evaluator.function(frame)
    operation = function.operations[number]
    if isinstance(operation, s.Attribute):
        local = operation.name.startswith("addressable_")
        return local or local_data(evaluator, frame, operation.base, depth - 1)
    if isinstance(operation, s.Subscript):
        return local_data(evaluator, frame, operation.base, depth - 1)
    if isinstance(operation, (s.Item, s.Store)):
        return local_data(evaluator, frame, operation.value, depth - 1)
    if isinstance(operation, s.Load):
        stores = evaluator.flow(frame.ref).reaching(number, operation.name)
        return bool(stores) and all(local_data(evaluator, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Call):
        for callee in evaluator.value(frame, operation.function):
            if isinstance(callee, External):
                return callee.name.startswith(_MAKERS)
        return local_data(evaluator, frame, operation.function, depth - 1)
    return False
