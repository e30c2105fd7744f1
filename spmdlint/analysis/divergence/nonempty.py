"""Conditions that are the same everywhere although their values are not: names and times are never empty."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, Member, certain
from spmdlint.program import summary as s

# Functions that give yes or no.
_ANSWERS = frozenset(("builtins.all", "builtins.any", "builtins.bool", "builtins.callable", "builtins.isinstance"))
_JOINS = "os.path.join"


def always_true(ev: Evaluator, frame: Frame, test: int, *, text_only: bool) -> bool:
    """Is a condition a value as such that is never zero or empty.

    ``text_only``: it has to be a text that is put together from others; what a call gives may be empty.
    """
    operation = ev.function(frame).operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return always_true(ev, frame, operation.operand, text_only=text_only)
    if isinstance(operation, s.Load) and ev.function(frame).binds(operation.name):
        stores = [ev.function(frame).operations[n] for n in ev.flow(frame.ref).reaching(test, operation.name)]
        values = [store.value for store in stores if isinstance(store, s.Store)]
        if text_only and len(values) < len(stores):
            return False
        return bool(values) and all(always_true(ev, frame, value, text_only=text_only) for value in values)
    if text_only:
        return _is_text(ev, frame, operation)
    if isinstance(operation, s.Const):
        return True
    if isinstance(operation, s.Call):
        callees = ev.value(frame, operation.function)
        return all(isinstance(v, (External, Member)) and v.name not in _ANSWERS for v in callees)
    return isinstance(operation, (s.Binary, s.FString))


def _is_text(ev: Evaluator, frame: Frame, operation: s.Operation) -> bool:
    """Is it a path or a text with something in it whatever the rest is."""
    operations = ev.function(frame).operations
    if isinstance(operation, s.Const):
        return isinstance(operation.value, str) and bool(operation.value)
    if isinstance(operation, s.FString):
        return any(_is_text(ev, frame, operations[part]) for part in operation.parts)
    if isinstance(operation, s.Binary) and operation.operator == "+":
        return any(_is_text(ev, frame, operations[side]) for side in (operation.left, operation.right))
    if isinstance(operation, s.Call) and len(operation.arguments) > 1:
        callee = certain(ev.value(frame, operation.function))
        return isinstance(callee, External) and callee.name == _JOINS
    return False
