"""Names that are certainly not None at a use, since code tested them before, and left or stored a value."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.program import summary as s
from spmdlint.program.summary import ValueId


def narrowed(ev: Evaluator, frame: Frame, number: ValueId, load: s.Load) -> bool:
    """Whether, on every path to a use, a branch has dealt with a name that is None: by leaving, or by a store to it."""
    function, flow = frame.code.function, ev.flow(frame.ref)
    if not function.binds(load.name):
        return False
    use = function.block_of[number]
    meant = flow.reaching(number, load.name)
    renewed = {function.block_of[store] for store in function.stores[load.name]}
    for block in flow.dominators_of(use):
        test = function.blocks[block].test
        asked = _asked(function, test, load.name) if test is not None else []
        absent = arm_of_none(function, block, load.name)
        if absent is None or not any(meant & flow.reaching(n, load.name) for n in asked):
            continue
        way = flow.reachable_by(absent, lambda source, _: source not in renewed)
        if use not in way:
            return True
    return False


def arm_of_none(function: s.Function, block: int, name: str) -> int | None:
    """The block that a branch leads to if a name is None; None if its condition does not depend on that."""
    test = function.blocks[block].test
    answer = where_none(function, test, name) if test is not None else None
    arms = {edge.kind: edge.target for edge in function.blocks[block].edges}
    return arms.get("true" if answer else "false") if answer is not None else None


def _asked(function: s.Function, test: ValueId, name: str) -> list[ValueId]:
    """The uses of a name in a condition."""
    operation = function.operations[test]
    if isinstance(operation, s.Load):
        return [test] if operation.name == name else []
    if isinstance(operation, s.Unary):
        return _asked(function, operation.operand, name)
    if isinstance(operation, (s.Compare, s.BoolOp)):
        return [found for operand in operation.operands for found in _asked(function, operand, name)]
    return []


def where_none(function: s.Function, test: ValueId, name: str) -> bool | None:
    """The answer of a condition if a name is None; None if that does not decide it."""
    operation = function.operations[test]
    if isinstance(operation, s.Load):
        return False if operation.name == name else None
    if isinstance(operation, s.Unary) and operation.operator == "not":
        found = where_none(function, operation.operand, name)
        return None if found is None else not found
    if isinstance(operation, s.Compare) and len(operation.operands) == 2:
        left, right = (function.operations[operand] for operand in operation.operands)
        asks = isinstance(left, s.Load) and left.name == name and isinstance(right, s.Const) and right.value is None
        return {"is": True, "==": True, "is not": False, "!=": False}.get(operation.operators[0]) if asks else None
    if isinstance(operation, s.BoolOp):
        found_in = [where_none(function, operand, name) for operand in operation.operands]
        decides = operation.operator == "or"
        if decides in found_in:
            return decides
        return (not decides) if all(each is (not decides) for each in found_in) else None
    return None
