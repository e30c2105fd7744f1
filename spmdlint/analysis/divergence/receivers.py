"""Calls of a method on one object among several, under a condition that uses the same object."""

from __future__ import annotations

from spmdlint.analysis.callgraph.effects import ParallelCall
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, Frame
from spmdlint.program import summary as s
from spmdlint.program.operands import operands


def chosen_by(evaluator: Evaluator, frame: Frame, test: int, call: ParallelCall) -> bool:
    """Whether a condition distinguishes the objects whose method makes the call: those it lets in may be others.

    As in ``if hook.runs_everywhere or process_index() == 0: hook.run()``, over hooks of several classes.
    """
    operations = frame.code.operations
    made = operations[call.site.number]
    method = operations[made.function] if isinstance(made, s.Call) else None
    receiver = operations[method.base] if isinstance(method, s.Attribute) else None
    if not isinstance(made, s.Call) or not isinstance(receiver, s.Load):
        return False
    run = [value for value in evaluator.value(frame, made.function) if value != Constant(None)]
    return len(run) > 1 and receiver.name in _names_in(frame, test)


def _names_in(frame: Frame, number: int) -> set[str]:
    """The names that occur in an expression."""
    operations = frame.code.operations
    found: set[str] = set()
    pending = [number]
    while pending:
        operation = operations[pending.pop()]
        if isinstance(operation, s.Load):
            found.add(operation.name)
        elif isinstance(operation, s.Call):
            pending += [operation.function, *(argument.value for argument in operation.arguments)]
        else:
            pending += operands(operation)
    return found
