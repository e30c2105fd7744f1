"""Whether the branches that choose between paths through a body depend on the devices.

A branch that may test the number of devices explains why one path reduces and another does not: on one device there is
nothing to reduce. If no branch does, each path must be right on all devices.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import DictionaryValue, Frame
from spmdlint.program import summary as s

_DEPTH = 6


def told_apart(ev: Evaluator, frame: Frame) -> bool:
    """Whether no undecided branch of a function depends on devices, by a comparison with a number or with None."""
    function = ev.function(frame)
    for number in ev.live_blocks(frame):
        test = function.blocks[number].test
        if test is not None and ev.decided(frame, test) is None and may_count(function, test):
            return False
    return True


def may_count(function: s.Function, test: int) -> bool:
    """Whether a test may ask for a number of devices, or whether there is an axis at all."""
    operation = function.operations[test]
    if isinstance(operation, s.Compare):
        operands = [function.operations[n] for n in operation.operands]
        return any(isinstance(o, s.Const) and (o.value is None or isinstance(o.value, int)) for o in operands)
    if isinstance(operation, s.Unary):
        return may_count(function, operation.operand)
    if isinstance(operation, s.BoolOp):
        return any(may_count(function, operand) for operand in operation.operands)
    return isinstance(operation, s.Call)


def chosen_freely(ev: Evaluator, frame: Frame, number: int, depth: int = 0) -> bool:
    """Whether a value is one of several, by a test that does not depend on devices, or by a key of a table."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Subscript):
        return any(isinstance(value, DictionaryValue) for value in ev.value(frame, operation.base))
    if isinstance(operation, s.IfExp):
        return not may_count(frame.code.function, operation.test)
    if isinstance(operation, s.Store):
        return chosen_freely(ev, frame, operation.value, depth + 1)
    if not isinstance(operation, s.Load) or depth > _DEPTH:
        return False
    home = ev.project.modules[frame.ref.path].summary.scope_of(frame.code.function, operation.name)
    if home is frame.code.function:
        stores = sorted(ev.reaching(frame, number, operation.name))
        return chosen_freely(ev, frame, stores[0], depth + 1) if len(stores) == 1 else told_apart(ev, frame)
    around = frame.outer
    while around is not None and around.code.function is not home:
        around = around.outer
    if around is None or home is None:
        return False
    live = ev.live_blocks(around)
    outside = [n for n in home.stores.get(operation.name, ()) if home.block_of[n] in live]
    return chosen_freely(ev, around, outside[0], depth + 1) if len(outside) == 1 else told_apart(ev, around)
