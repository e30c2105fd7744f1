"""The operands of operations: which values an operation is made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spmdlint.program import summary as s


def operands(operation: s.Operation) -> tuple[int, ...]:
    """The operands of an operation; none for an operation that is not followed."""
    found = _OPERANDS.get(type(operation))
    return found(operation) if found is not None else ()


def inputs(operation: s.Operation) -> tuple[int, ...]:
    """The values that an operation is made from: the arguments of a call, the operands of any other operation."""
    if isinstance(operation, s.Call):
        return tuple(argument.value for argument in operation.arguments)
    return operands(operation)


_OPERANDS: dict[type, Callable[[Any], tuple[int, ...]]] = {
    s.Attribute: lambda o: (o.base,),
    s.Subscript: lambda o: (o.base, o.index),
    s.Unary: lambda o: (o.operand,),
    s.Binary: lambda o: (o.left, o.right),
    s.Compare: lambda o: o.operands,
    s.BoolOp: lambda o: o.operands,
    s.IfExp: lambda o: (o.test, o.body, o.orelse),
    s.Display: lambda o: o.elements,
    s.DictDisplay: lambda o: (*(key for key in o.keys if key is not None), *o.values),
    s.FString: lambda o: o.parts,
    s.Next: lambda o: (o.iterable,),
    s.Item: lambda o: (o.value,),
    s.Store: lambda o: (o.value,),
    s.Await: lambda o: (o.value,),
    s.Enter: lambda o: (o.manager,),
}
