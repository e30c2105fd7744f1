"""Which values differ between processes, and because of what.

A value varies if it comes from a source (the process's own number, as far as the knowledge base names them) and has
passed no agreement point on the way. The unknown does not vary: silence, where nothing is proven.
"""

from __future__ import annotations

from typing import Literal

from spmdlint.analysis.origins import CONTINUE, Origins, Property, Reason
from spmdlint.analysis.values import External, Frame, Site, Values, constant
from spmdlint.knowledge.load import Knowledge
from spmdlint.program import summary as s

# Functions whose result differs if an argument does, and which decide nothing themselves.
_CARRIERS = frozenset(
    f"builtins.{name}"
    for name in "int bool str float abs min max len any all not divmod round sum repr range list tuple sorted".split()
)
# Comparisons of a process's number that hold for a range or a list of processes, as those that share a mesh do.
_GROUPS = frozenset(("<", "<=", ">", ">=", "in", "not in"))


class Variance(Property):
    """Varies between processes."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, s.Compare) and _asks_presence(origins.ev.function(frame), operation):
            return None
        if isinstance(operation, s.Compare) and any(o in _GROUPS for o in operation.operators):
            found = origins.any_of(frame, operation.operands)
            if found is None or found.kind != "identity":
                return found
            return Reason(Site(frame.ref, number), "it tells a group of processes from the others", "group", found)
        if isinstance(operation, (s.Unary, s.Binary, s.Compare, s.FString, s.Subscript, s.Item)):
            return origins.any_of(frame, _operands(operation)) or self._source(origins, frame, number)
        if isinstance(operation, s.Attribute):
            return self._source(origins, frame, number) or CONTINUE
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        return CONTINUE

    def _call(
        self, origins: Origins, frame: Frame, number: int, operation: s.Call
    ) -> Reason | Literal["continue"] | None:
        arguments = [argument.value for argument in operation.arguments]
        for callee in origins.ev.value(frame, operation.function):
            if not isinstance(callee, External):
                continue
            known = self.knowledge.get(callee.name)
            if known is not None and known.agreement:
                return None
            if known is not None and known.source is not None:
                text = f"{callee.name}() is different on every process"
                return Reason(Site(frame.ref, number), text, known.source)
            if callee.name in ("os.getenv", "os.environ.get") and operation.arguments:
                return self._environment(origins.ev.value(frame, arguments[0]), Site(frame.ref, number))
            if callee.name in _CARRIERS:
                return origins.any_of(frame, arguments)
        return CONTINUE

    def _source(self, origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Names and elements that are sources without being called."""
        operation = origins.ev.function(frame).operations[number]
        if isinstance(operation, s.Subscript):
            bases = origins.ev.value(frame, operation.base)
            if any(isinstance(base, External) and base.name == "os.environ" for base in bases):
                return self._environment(origins.ev.value(frame, operation.index), Site(frame.ref, number))
            return None
        for value in origins.ev.value(frame, number):
            if isinstance(value, External):
                known = self.knowledge.get(value.name)
                if known is not None and known.attribute and known.source is not None:
                    text = f"{value.name} is different on every process"
                    return Reason(Site(frame.ref, number), text, known.source)
        return None

    def _environment(self, name: Values, site: Site) -> Reason | None:
        variable = constant(name)
        if variable is not None and variable.value in self.knowledge.ranks:
            return Reason(site, f"the environment variable {variable.value} is this process's number", "identity")
        return None


def _asks_presence(function: s.Function, operation: s.Compare) -> bool:
    """Is a value compared with None or "": whether there is one is alike everywhere, whatever it is."""
    operands = [function.operations[number] for number in operation.operands]
    return any(isinstance(o, s.Const) and (o.value is None or o.value == "") for o in operands)


def _operands(operation: s.Operation) -> tuple[int, ...]:
    if isinstance(operation, s.Unary):
        return (operation.operand,)
    if isinstance(operation, s.Binary):
        return (operation.left, operation.right)
    if isinstance(operation, s.Compare):
        return operation.operands
    if isinstance(operation, s.FString):
        return operation.parts
    if isinstance(operation, s.Subscript):
        return (operation.base, operation.index)
    if isinstance(operation, s.Item):
        return (operation.value,)
    return ()
