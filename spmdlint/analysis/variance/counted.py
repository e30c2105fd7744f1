"""Lists whose length a branch has just tested: ``if len(rows) == size: yield stack(rows)``."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.program import summary as s

# ``>=`` is tested after each element that is added.
_REACHED = {"==": "true", ">=": "true", "!=": "false", "<": "false"}
_TURNED = {">=": "<=", "<": ">", "==": "==", "!=": "!="}


def size_asked_for(ev: Evaluator, frame: Frame, number: int, load: s.Load) -> int | None:
    """The size that a named list has been tested to have on every path to a use of it; None if nothing tests it."""
    function, flow = frame.code.function, frame.code.flow
    block = function.block_of[number]
    for asking in flow.dominators_of(block):
        test = function.blocks[asking].test
        found = _compared(ev, frame, test, load.name) if test is not None else None
        if found is None:
            continue
        asked, size, arm = found
        arms = [edge.target for edge in function.blocks[asking].edges if edge.kind == arm]
        within = flow.guarded(asking, arms[0]) if arms else frozenset()
        is_store = isinstance(function.operations[asked], s.Store)
        same = flow.reaching(number, load.name) == (
            frozenset((asked,)) if is_store else flow.reaching(asked, load.name)
        )
        if block in within and same and not any(function.block_of[n] in within for n in filling_of(ev, frame, number)):
            return size
    return None


def _compared(ev: Evaluator, frame: Frame, test: int, name: str) -> tuple[int, int, str] | None:
    """For ``len(name)`` compared with a size: the use of the name, the size, and the arm for equal sizes."""
    operations = frame.code.operations
    compare = operations[test]
    if not isinstance(compare, s.Compare) or len(compare.operands) != 2:
        return None
    left, right = compare.operands
    operator = compare.operators[0]
    for length, size, arm in (
        (left, right, _REACHED.get(operator)),
        (right, left, next((a for o, a in _REACHED.items() if _TURNED[o] == operator), None)),
    ):
        call = operations[length]
        if arm is None or not isinstance(call, s.Call) or len(call.arguments) != 1:
            continue
        counted = call.arguments[0].value
        of = operations[counted]
        names = {v.name for v in ev.value(frame, call.function) if isinstance(v, External)}
        if "builtins.len" not in names:
            continue
        if isinstance(of, s.Load) and of.name == name:
            return counted, size, arm
        for store in frame.code.function.stores.get(name, ()):  # ``len(rows := take())``
            if getattr(operations[store], "value", None) == counted:
                return store, size, arm
    return None
