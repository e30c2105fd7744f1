"""Conditions that hold on every process although their value differs: a name or a time is never empty or zero."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Member, Value
from spmdlint.program import summary as s

# Functions that give a name, number or time that is never empty or zero, or that keep it so.
_ASKED = ("time.", "datetime.", "socket.", "platform.", "os.", "uuid.")
_KEEPS = frozenset(("builtins.str", "builtins.float", "builtins.repr"))
_METHODS = frozenset("strftime isoformat timestamp total_seconds hex strip lower upper split".split())
_CUTS = ("%", "//", "&", ">>")


def always_true(evaluator: Evaluator, frame: Frame, test: int, asked: frozenset[int] = frozenset()) -> bool:
    """Whether a condition is a time or a name, or computed from one: it differs everywhere, but is never zero.

    ``asked`` are the operations that lead to this question: a name that a loop gives itself again says nothing.
    """
    function = evaluator.function(frame)
    operation = function.operations[test]
    if test in asked:
        return False
    asked |= {test}
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return always_true(evaluator, frame, operation.operand, asked)
    if isinstance(operation, s.Load) and function.binds(operation.name):
        stores = evaluator.reaching(frame, test, operation.name)
        values = [store.value for n in stores if isinstance(store := function.operations[n], s.Store)]
        return bool(values) and all(always_true(evaluator, frame, value, asked) for value in values)
    if isinstance(operation, s.BoolOp):
        answers = [always_true(evaluator, frame, each, asked) for each in operation.operands]
        return any(answers) if operation.operator == "or" else all(answers)
    if isinstance(operation, s.Binary):
        return operation.operator not in _CUTS
    if isinstance(operation, s.Call):
        callees = evaluator.value(frame, operation.function)
        return bool(callees) and all(_is_kept(evaluator, callee) for callee in callees)
    return isinstance(operation, s.FString) or (isinstance(operation, s.Const) and bool(operation.value))


def _is_kept(evaluator: Evaluator, callee: Value) -> bool:
    if isinstance(callee, Member):
        return callee.name in _METHODS
    if isinstance(callee, External):
        owner, _, method = callee.name.rpartition(".")
        known = evaluator.knowledge.get(owner)
        if known is not None and known.attribute:
            return method in _METHODS
    return isinstance(callee, External) and (callee.name.startswith(_ASKED) or callee.name in _KEEPS)
