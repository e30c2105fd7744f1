"""Sequences and arrays whose size the program has tested: ``if len(rows) == size: yield stack(rows)``.

Whatever tests it: the branch around a use, one whose other arm raises or leaves, an ``assert``, or a function that
raises unless two values are equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s

_EQUAL = {"==": True, "!=": False}
# ``>=`` is tested after each element that is added, or of a part that is cut to the size.
_REACHED = {"==": True, ">=": True, "!=": False, "<": False}
_TURNED = {">=": "<=", "<": ">", "==": "==", "!=": "!="}
_FIELDS = frozenset(("shape", "size"))


def size_asked_for(ev: Evaluator, frame: Frame, number: int, load: s.Load) -> int | None:
    """The size that what a name holds has been tested to have on every path to a use of it; None if nothing tests it.

    That is its number of rows, its whole shape, or the number of all its elements.
    """
    function, flow = frame.code.function, frame.code.flow
    filled = filling_of(ev, frame, number)
    block, here = function.block_of[number], flow.reaching(number, load.name)
    for asking, first, counted, size in _known_at(ev, frame, number):
        use = _counted(ev, frame, counted, load.name)
        if use is None:
            continue
        is_store = isinstance(function.operations[use], s.Store)
        asked = frozenset((use,)) if is_store else flow.reaching(use, load.name)
        since = flow.reachable(first, without=asking) if filled else frozenset[int]()
        changed = any(
            function.block_of[n] in since and block in flow.reachable(function.block_of[n], without=asking)
            for n in filled
        )
        if asked == here and not changed:
            return size
    return None


def _known_at(ev: Evaluator, frame: Frame, number: int) -> Iterator[tuple[int, int, int, int]]:
    """The pairs of values known to be equal at an operation: the block that asks, the next one, and both values."""
    function, flow = frame.code.function, frame.code.flow
    block = function.block_of[number]
    for found in flow.answers_before(block):
        # Where too few elements end the program, any larger number goes on.
        operators = _REACHED if block in flow.guarded(found.block, found.target) else _EQUAL
        for one, other in _equal_if(frame, found.test, operators, answer=found.holds):
            yield found.block, found.target, one, other
            yield found.block, found.target, other, one
    for place, call in frame.code.calls_named(ev.knowledge.equating).items():
        if not frame.code.always_before(place, number):
            continue
        at = function.block_of[place]
        for value in ev.in_order(ev.value(frame, call.function)):
            known = ev.knowledge.get(value.name) if isinstance(value, External) else None
            given = [passed(call, each, known.positional) for each in known.equates] if known is not None else []
            pair = [each for each in given if each is not None]
            if len(pair) == 2:
                yield at, at, pair[0], pair[1]
                yield at, at, pair[1], pair[0]


def _equal_if(frame: Frame, test: int, operators: dict[str, bool], *, answer: bool) -> Iterator[tuple[int, int]]:
    """The pairs of values that are equal if a condition holds, or if it does not."""
    operation = frame.code.operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        yield from _equal_if(frame, operation.operand, operators, answer=not answer)
    elif isinstance(operation, s.BoolOp) and answer == (operation.operator == "and"):
        for operand in operation.operands:
            yield from _equal_if(frame, operand, operators, answer=answer)
    elif isinstance(operation, s.Compare) and len(operation.operands) == 2:
        left, right = operation.operands
        operator = operation.operators[0]
        if operators.get(operator) == answer:
            yield left, right
        if any(_TURNED[o] == operator and holds == answer for o, holds in operators.items()):
            yield right, left


def _counted(ev: Evaluator, frame: Frame, number: int, name: str) -> int | None:
    """For the number of rows, the shape or the size of what a name holds: the use of the name, or its store."""
    operations = frame.code.operations
    number = resolved(ev, frame, number)
    operation = operations[number]
    if isinstance(operation, s.Item) and operation.index == 0:
        operation = operations[resolved(ev, frame, operation.value)]  # ``rows, width = x.shape``
    elif isinstance(operation, s.Subscript):
        index = operations[operation.index]
        operation = operations[operation.base] if isinstance(index, s.Const) and index.value == 0 else operation
    sizes = reading().sizes
    if isinstance(operation, s.Attribute) and operation.name in _FIELDS:
        counted = operation.base
    elif isinstance(operation, s.Call) and len(operation.arguments) == 1 and ev.may_call(frame, operation, *sizes):
        counted = operation.arguments[0].value
    else:
        return None
    of = operations[counted]
    if isinstance(of, s.Load) and of.name == name:
        return counted
    stores = frame.code.function.stores.get(name, ())  # ``len(rows := take())``
    return next((store for store in stores if getattr(operations[store], "value", None) == counted), None)
