"""Values used only where a caller omits a parameter: ``width or longest``, ``if width is None: width = n``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, Frame, constant
from spmdlint.analysis.variance.narrowed import arm_of_none, where_none
from spmdlint.program import summary as s


def passes_value(ev: Evaluator, caller: Frame, number: int) -> bool:
    """Whether a call most likely passes a value: not None, and not a parameter of the caller that has a default."""
    if constant(ev.value(caller, number)) == Constant(None):
        return False
    root = caller.code.operations[caller.code.root_of(number)]
    if not isinstance(root, s.Parameter):
        return True
    return not any(formal.name == root.name and formal.default for formal in caller.code.function.formals)


def parameters_asked(frame: Frame, number: int) -> frozenset[str]:
    """The parameters that a condition or an operand names, if they still have the value that was passed."""
    code = frame.code
    operation = code.operations[number]
    if isinstance(operation, s.Load):
        root = code.operations[code.root_of(number)]
        return frozenset((root.name,)) if isinstance(root, s.Parameter) and root.name == operation.name else frozenset()
    inner: tuple[int, ...] = ()
    if isinstance(operation, s.Unary):
        inner = (operation.operand,)
    elif isinstance(operation, s.Compare):
        inner = operation.operands
    return frozenset().union(*(parameters_asked(frame, each) for each in inner))


def where_given(frame: Frame, operation: s.IfExp | s.BoolOp, name: str) -> tuple[int, ...] | None:
    """The operands that remain of a choice if a parameter has a value; None if that does not decide it."""
    function = frame.code.function
    if isinstance(operation, s.BoolOp):
        left = operation.operands[0]
        return (left,) if operation.operator == "or" and isinstance(function.operations[left], s.Load) else None
    absent = where_none(function, operation.test, name)
    if absent is None:
        return None
    return (operation.orelse,) if absent else (operation.body,)


def stored_where_missing(ev: Evaluator, frame: Frame, store: int, name: str) -> bool:
    """Whether a store to a parameter's name runs only where the caller omitted the parameter."""
    function, flow = frame.code.function, ev.flow(frame.ref)
    here = function.block_of[store]
    for block in flow.dominators_of(here):
        test = function.blocks[block].test
        if test is None or name not in parameters_asked(frame, test):
            continue
        absent = arm_of_none(function, block, name)
        if absent is not None and flow.leads(block, absent, here):
            return True
    return False
