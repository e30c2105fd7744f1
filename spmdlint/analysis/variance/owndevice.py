"""Devices of this process: an element of `jax.local_devices()` can identify a process."""

from __future__ import annotations

from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

NUMBERS = frozenset(("id", "process_index", "coords"))
"""Attributes that differ between any two devices, or any two processes, of a job; the others usually do not."""


class OwnDevice(Property):
    """The value is a device of this process, or a list of them."""

    def __init__(self) -> None:
        self.local = reading().local

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Next):
            return origins.of(frame, operation.iterable)
        if isinstance(operation, s.Subscript):
            return origins.of(frame, operation.base)
        if isinstance(operation, s.Call):
            for callee in ordered(origins.ev.value(frame, operation.function)):
                if isinstance(callee, External):
                    if callee.name in self.local:
                        return Reason(
                            Site(frame.ref, number), f"{callee.name}() gives this process's devices", "identity"
                        )
                    listed = callee.name in ("builtins.list", "builtins.sorted", "builtins.reversed")
                    return origins.of(frame, operation.arguments[0].value) if listed and operation.arguments else None
            return CONTINUE
        if isinstance(operation, (s.Load, s.Store, s.Attribute, s.Parameter, s.Import)):
            return CONTINUE
        return None
