"""What a method has just put into a field of its object, and nothing that ran in between can have changed."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.receivers import is_receiver
from spmdlint.program import summary as s


def stored_before(code: Code, number: int, read: s.Attribute) -> int | None:
    """The value that ``self.x`` was given last, on the one way that leads to where it is read.

    None where another method of the object is called in between, or the object is handed to somebody.
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
    """Is a call one of a method of the object, or given the object."""
    method = code.operations[call.function]
    given = [argument.value for argument in call.arguments]
    if isinstance(method, s.Attribute):
        given.append(method.base)
    return any(is_receiver(code.function, value) for value in given)
