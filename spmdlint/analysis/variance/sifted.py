"""Parts of the data that are filtered after they were shared out: how many examples remain depends on their content.

Each process got the same number, and discards what is too long, too short or otherwise of no use: a different number on
each process. A test of a name or path for its ending, or of an entry for its presence, does not judge an example.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Site
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.sources import drawn_in_round
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_ORDERS = frozenset(("<", "<=", ">", ">="))
_DEPTH = 8


def of_tests(content: Origins, frame: Frame, number: int, tests: Iterable[int], loops: Iterable[int]) -> Reason | None:
    """Why differently many elements of loops pass these tests on each process; what is kept is kept at ``number``."""
    operations = frame.code.operations
    for loop in loops:
        step = operations[loop]
        if not isinstance(step, s.Next):
            continue
        found = None
        if any(_judges(content.ev, frame, test, loop) for test in tests):
            found = _of_own(content, frame, number, step.iterable)
        found = found or _of_own_parts(content, frame, number, tests, loop, step.iterable)
        found = found or _of_draw(content, frame, number, tests, loop)
        if found is not None:
            return found
    return None


def _of_own_parts(
    content: Origins, frame: Frame, number: int, tests: Iterable[int], loop: int, iterable: int
) -> Reason | None:
    """Why tests keep some of the parts that this process holds of a global array: its layout decides how many."""
    found = content.why(frame, loop)
    if found is None or found.kind != "data" or content.why(frame, iterable) is not None:
        return None
    if not any(_asks_about(frame, test, loop) for test in tests):
        return None
    text = "how many of this process's own parts are kept depends on where the array lies"
    return Reason(Site(frame.ref, number), text, "data", found)


def _of_draw(content: Origins, frame: Frame, number: int, tests: Iterable[int], loop: int) -> Reason | None:
    """Why a test keeps some elements at random: ``if rng.random() < 0.1``."""
    found = drawn_in_round(content, frame, loop, tests)
    text = "how many elements are kept is left to what this process draws"
    return Reason(Site(frame.ref, number), text, "data", found.source) if found is not None else None


def of_filter(content: Origins, frame: Frame, number: int, arguments: list[int]) -> Reason | None:
    """Why ``filter(function, mine)`` keeps a different number of elements on each process."""
    if len(arguments) != 2 or not _is_own(content.ev, frame, arguments[0]):
        return None
    return _of_own(content, frame, number, arguments[1])


def _of_own(content: Origins, frame: Frame, number: int, iterable: int) -> Reason | None:
    found = content.why(frame, iterable)
    if found is None or found.kind != "data":
        return None
    text = "how many of this process's own examples are kept depends on their content"
    return Reason(Site(frame.ref, number), text, "data", found.source if found.source is not found else None)


def _judges(ev: Evaluator, frame: Frame, test: int, element: int) -> bool:
    """Whether a condition judges an element: by its size, or by a function of the project."""
    operation = frame.code.operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return _judges(ev, frame, operation.operand, element)
    if isinstance(operation, s.BoolOp):
        return any(_judges(ev, frame, operand, element) for operand in operation.operands)
    if isinstance(operation, s.Compare):
        sized = all(operator in _ORDERS for operator in operation.operators)
        return sized and any(_made_of(frame, operand, element, _DEPTH) for operand in operation.operands)
    if isinstance(operation, s.Call) and _is_own(ev, frame, operation.function):
        return any(_made_of(frame, argument.value, element, _DEPTH) for argument in operation.arguments)
    return False


def _asks_about(frame: Frame, test: int, element: int) -> bool:
    """Whether a condition compares an element, or a part of it, with something."""
    operation = frame.code.operations[test]
    asked = operation.operands if isinstance(operation, s.Compare) else (test,)
    return any(_made_of(frame, each, element, _DEPTH) for each in asked)


def _is_own(ev: Evaluator, frame: Frame, function: int) -> bool:
    values = ev.value(frame, function)
    return bool(values) and all(isinstance(value, FunctionValue) for value in values)


def _made_of(frame: Frame, number: int, element: int, depth: int) -> bool:
    """Whether a value is the element of a loop, a part of it, or a number that is computed from it."""
    root = frame.code.root_of(number)
    operation = frame.code.operations[root]
    if root == element or depth == 0:
        return depth > 0
    return any(_made_of(frame, each, element, depth - 1) for each in inputs(operation))
