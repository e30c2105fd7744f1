"""The object whose method a function is, by the name of its first parameter, and the fields of that object."""

from __future__ import annotations

from spmdlint.program import summary as s


def is_own_field(method: s.Function, number: int, name: str) -> bool:
    """Is a value the attribute of a name of the receiver of a method."""
    operation = method.operations[number]
    return isinstance(operation, s.Attribute) and operation.name == name and is_receiver(method, operation.base)


def is_receiver(method: s.Function, number: int) -> bool:
    """Is a value the object whose method this is, by the name of the first parameter."""
    operation = method.operations[number]
    return isinstance(operation, s.Load) and bool(method.formals) and operation.name == method.formals[0].name
