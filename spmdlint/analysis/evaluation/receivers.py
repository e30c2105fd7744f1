"""The receiver of a method, recognised by the name of the first parameter, and what the method stores to its fields."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import Code
from spmdlint.program import summary as s


def is_own_field(method: s.Function, number: int, name: str) -> bool:
    """Whether a value is the attribute ``name`` of the method's receiver."""
    operation = method.operations[number]
    return isinstance(operation, s.Attribute) and operation.name == name and is_receiver(method, operation.base)


def is_receiver(method: s.Function, number: int) -> bool:
    """Whether a value is the method's receiver: the value of its first parameter."""
    operation = method.operations[number]
    return isinstance(operation, s.Load) and bool(method.formals) and operation.name == method.formals[0].name


def stored_before(code: Code, number: int, read: s.Attribute) -> int | None:
    """The value last stored to ``self.x`` on the only path to the operation that reads it.

    None if a method of the object is called in between, or the object is passed to a call.
    """
    if read.name not in code.own_fields or not is_receiver(code.function, read.base):
        return None
    block = code.function.block_of[number]
    before = [n for n in code.function.blocks[block].operations if n < number]
    seen = {block}
    while True:
        for each in reversed(before):
            operation = code.operations[each]
            if isinstance(operation, s.StoreAttribute):
                if operation.name == read.name:
                    return operation.value if is_receiver(code.function, operation.base) else None
            elif isinstance(operation, s.Call) and _involves(code, operation):
                return None
        sources = code.flow.predecessors[block]
        if len(sources) != 1 or sources[0] in seen:
            return None
        block = sources[0]
        seen.add(block)
        before = list(code.function.blocks[block].operations)


def _involves(code: Code, call: s.Call) -> bool:
    """Whether a call calls a method of the object, or is passed the object."""
    method = code.operations[call.function]
    given = [argument.value for argument in call.arguments]
    if isinstance(method, s.Attribute):
        given.append(method.base)
    return any(is_receiver(code.function, value) for value in given)
