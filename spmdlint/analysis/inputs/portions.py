"""One process's portion of something, divided by a number that counts the devices of all processes.

A number that was divided by the number of processes is one process's portion. To share it among the devices, it must be
divided by the number of this process's devices; if it is divided by the number of all devices, the number of processes
is divided out twice.
"""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property, Reason
from spmdlint.knowledge.units import Unit
from spmdlint.program import summary as s

KEEPS = frozenset(("builtins.int", "builtins.max", "builtins.min", "math.floor", "math.ceil"))
_CARRIES = (s.Load, s.Store, s.Parameter, s.Attribute, s.IfExp, s.BoolOp, s.Import)


class Portion(Property):
    """The value is the portion of one of these ``units``, such as a process: it was divided by their number."""

    def __init__(self, quantities: Quantities, *units: Unit) -> None:
        self.quantities = quantities
        self.units = units

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, s.Binary) and operation.operator in ("/", "//"):
            count = self.quantities.of(frame, operation.right)
            if count is not None and count.role == "count" and count.unit in self.units:
                return Reason(count.site, count.text, count.unit)
            return origins.of(frame, operation.left)
        if isinstance(operation, s.Call):
            return _kept(origins, frame, operation)
        return CONTINUE if isinstance(operation, _CARRIES) else None


class Whole(Property):
    """The value counts the devices of all processes, once or several times."""

    def __init__(self, quantities: Quantities) -> None:
        self.quantities = quantities

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, (s.Call, s.Load)):
            count = self.quantities.of(frame, number)
            if count is not None and (count.role, count.unit) == ("count", "device"):
                return Reason(count.site, count.text, "whole")
        if isinstance(operation, s.Binary) and operation.operator == "*":
            return origins.any_of(frame, (operation.left, operation.right))
        if isinstance(operation, s.Call):
            return _kept(origins, frame, operation)
        return CONTINUE if isinstance(operation, _CARRIES) else None


def _kept(origins: Origins, frame: Frame, operation: s.Call) -> Reason | Literal["continue"] | None:
    """Why a call that returns an argument, perhaps rounded, has the property; the project's functions are followed."""
    for callee in ordered(origins.ev.value(frame, operation.function)):
        if isinstance(callee, External):
            kept = callee.name in KEEPS
            return origins.any_of(frame, [argument.value for argument in operation.arguments]) if kept else None
    return CONTINUE
