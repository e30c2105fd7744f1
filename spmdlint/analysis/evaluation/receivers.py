"""The receiver of a method, recognised by the name of the first parameter, and the fields of that object."""

from __future__ import annotations

from spmdlint.program import summary as s


def is_own_field(method: s.Function, number: int, name: str) -> bool:
    """Whether a value is the attribute ``name`` of the method's receiver."""
    operation = method.operations[number]
    return isinstance(operation, s.Attribute) and operation.name == name and is_receiver(method, operation.base)


def is_receiver(method: s.Function, number: int) -> bool:
    """Whether a value is the method's receiver: the value of its first parameter."""
    operation = method.operations[number]
    return isinstance(operation, s.Load) and bool(method.formals) and operation.name == method.formals[0].name
