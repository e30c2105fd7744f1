"""How the arm of a branch ends: in an exception that stops the job, or in leaving the job to the other processes."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.program import summary as s
from spmdlint.program.summary import EXIT, FAILURE

_LEAVES = frozenset(("sys.exit", "os._exit", "builtins.exit", "builtins.quit", "builtins.SystemExit"))


def fails(ev: Evaluator, frame: Frame, arm: int, branch: int) -> bool:
    """Whether this arm always ends in an exception that stops the job; an arm that returns to its branch does not."""
    if _asserts(frame, arm):
        return True
    reached = ev.flow(frame.ref).reachable(arm)
    return FAILURE in reached and EXIT not in reached and branch not in reached


def leaves_quietly(ev: Evaluator, frame: Frame, arm: int) -> bool:
    """Whether an arm that fails ends its process without an error: ``sys.exit(0)``, ``raise SystemExit``."""
    operations = frame.code.operations
    blocks = (frame.code.function.blocks[block].operations for block in ev.flow(frame.ref).reachable(arm))
    last = [operations[numbers[-1]] for numbers in blocks if numbers]
    raised = [each.exception for each in last if isinstance(each, s.Raise)]
    return bool(raised) and all(number is not None and is_quiet(ev, frame, number) for number in raised)


def is_quiet(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether what is raised ends the process without an error."""
    made = frame.code.operations[number]
    if isinstance(made, s.Call) and made.arguments:
        status = frame.code.operations[made.arguments[0].value]
        if not isinstance(status, s.Const) or status.value not in (0, None):
            return False
    callees = ev.value(frame, made.function if isinstance(made, s.Call) else number)
    return any(isinstance(v, External) and v.name in _LEAVES for v in callees)


def _asserts(frame: Frame, arm: int) -> bool:
    """Whether an arm is that of a failing `assert`: no program relies on that, whoever may catch it."""
    function = frame.code.function
    numbers = function.blocks[arm].operations
    last = function.operations[numbers[-1]] if numbers else None
    if not isinstance(last, s.Raise):
        return False
    told = function.operations[last.exception] if last.exception is not None else None
    return told is None or isinstance(told, s.FString) or (isinstance(told, s.Const) and type(told.value) is str)
