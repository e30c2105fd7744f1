"""Decides conditions as they are on several devices or processes: the linter assumes several, never just one."""

from __future__ import annotations

from spmdlint.analysis.evaluation.comparing import compared_counts
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, FunctionValue
from spmdlint.program import summary as s

_DEPTH = 4


def on_several(ev: Evaluator, frame: Frame, test: int, depth: int = _DEPTH) -> bool | None:
    """The outcome of a condition that tests for a single device or process, if there are several; None for others.

    It is the same in all frames of a function.
    """
    operation = frame.code.operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        answer = on_several(ev, frame, operation.operand, depth - 1) if depth else None
        return None if answer is None else not answer
    if isinstance(operation, s.BoolOp) and depth:
        wanted = operation.operator == "or"
        answers = [on_several(ev, frame, each, depth - 1) for each in operation.operands]
        if wanted in answers:
            return wanted
        return not wanted if None not in answers else None
    if isinstance(operation, s.Compare) and len(operation.operators) == 1:
        left, right = (ev.value(frame, each) for each in operation.operands)
        return compared_counts(operation.operators[0], left, right, "process", "device")
    asked = _asked(ev, frame, test, operation) if depth else None
    return on_several(ev, *asked, depth - 1) if asked is not None else None


def _asked(ev: Evaluator, frame: Frame, test: int, operation: s.Operation) -> tuple[Frame, int] | None:
    """The condition that a name was given, or that a function of the project returns."""
    if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
        stores = [frame.code.operations[store] for store in ev.reaching(frame, test, operation.name)]
        return (frame, stores[0].value) if len(stores) == 1 and isinstance(stores[0], s.Store) else None
    if not isinstance(operation, s.Call) or not _is_global(frame, operation.function):
        return None  # a method of a value: to evaluate these for every branch is too much
    callee = ev.callee(frame, operation)
    if not isinstance(callee, FunctionValue):
        return None
    inside = ev.free_frame(callee.ref)
    returned = [given.value for _, given in inside.code.returns if given.value is not None]
    return (inside, returned[0]) if len(returned) == 1 else None


def _is_global(frame: Frame, number: int) -> bool:
    """Whether what is called has a name of the module, or is a part of one."""
    operation = frame.code.operations[number]
    while isinstance(operation, s.Attribute):
        operation = frame.code.operations[operation.base]
    return isinstance(operation, s.Load) and not frame.code.function.binds(operation.name)


def for_one_alone(ev: Evaluator, frame: Frame) -> frozenset[int]:
    """The blocks that only a job of one device or process comes to: a removed name fails there as well."""
    found: set[int] = set()
    for number, outcome in ev.decisions(frame):
        block = frame.code.function.blocks[number]
        if block.test is not None and on_several(ev, frame, block.test) is not None:
            left_out = "false" if outcome else "true"
            for edge in block.edges:
                if edge.kind == left_out:
                    found |= frame.code.flow.guarded(number, edge.target)
    return frozenset(found)
