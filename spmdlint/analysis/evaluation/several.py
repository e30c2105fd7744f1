"""Decides conditions as they are on several devices or processes: the linter assumes several, never just one."""

from __future__ import annotations

from functools import lru_cache

from spmdlint.analysis.evaluation.comparing import MIRRORED, ON_SEVERAL, counted
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, FunctionValue
from spmdlint.knowledge.units import Unit, units
from spmdlint.program import summary as s

_DEPTH = 4


@lru_cache
def counting(*asked: Unit) -> frozenset[str]:
    """The functions that count or list something of these units."""
    return frozenset(name for table in (units().counts, units().lists) for name in table if table[name] in asked)


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
        return _compared(ev, frame, operation.operators[0], *operation.operands)
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


def _compared(ev: Evaluator, frame: Frame, operator: str, left: int, right: int) -> bool | None:
    for count, number, asked in ((left, right, operator), (right, left, MIRRORED.get(operator, ""))):
        than, made = (frame.code.operations[n] for n in (number, frame.code.root_of(count)))
        if isinstance(than, s.Const) and type(than.value) is int and isinstance(made, s.Call):
            unit = counted(ev.value(frame, count))
            return ON_SEVERAL.get((asked, than.value)) if unit is not None and unit != "local" else None
    return None
