"""Whether a function may change the size of a batch: one that pads, cuts or joins rows does, an unknown one may."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Arguments, External, Frame, FunctionValue, Value, Values
from spmdlint.program import summary as s

_DEPTH = 3
_LIBRARIES = ("numpy.", "jax.", "tensorflow.", "builtins.", "functools.", "operator.")
_RESIZERS = frozenset("pad concatenate concat resize append zeros ones full empty tile repeat vstack hstack".split())


def keeps_sizes(ev: Evaluator, functions: Values, depth: int = _DEPTH) -> bool:
    """Whether all of these functions certainly keep the number of rows."""
    return bool(functions) and all(_keeps(ev, function, depth) for function in functions)


def _keeps(ev: Evaluator, called: Value, depth: int) -> bool:
    function, _ = ev.through_partial(called, Arguments())
    if isinstance(function, External):
        return function.name.startswith(_LIBRARIES) and function.name.rpartition(".")[2] not in _RESIZERS
    return isinstance(function, FunctionValue) and depth > 0 and _body_keeps(ev, ev.free_frame(function.ref), depth)


def _body_keeps(ev: Evaluator, frame: Frame, depth: int) -> bool:
    if "pad" in frame.code.function.name:
        return False
    for _, call in frame.code.calls_in(sorted(ev.live_blocks(frame))):
        callees = ev.value(frame, call.function)
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and not any(isinstance(c, (External, FunctionValue)) for c in callees):
            if method.name in _RESIZERS or "pad" in method.name:
                return False
        elif not keeps_sizes(ev, callees, depth - 1):
            return False
    return True
