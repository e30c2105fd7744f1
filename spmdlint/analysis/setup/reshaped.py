"""Arrays that are gathered from all processes, and then reshaped as if there were only one."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, certain
from spmdlint.program import summary as s

_CONVERTERS = frozenset(("numpy.array", "numpy.asarray", "jax.numpy.array", "jax.numpy.asarray", "jax.device_get"))
_DEPTH = 8
"""The most conversions of one array that are followed: a loop may make them endless."""


def reshaped_as_before(ev: Evaluator, frame: Frame, gather: int, call: s.Call) -> int | None:
    """The operation that reshapes the result of a gathering to the very shape of the gathered array."""
    code = frame.code
    gathered = code.operations[call.arguments[0].value]
    if not isinstance(gathered, s.Load):
        return None
    for number, reshape in code.calls_named(frozenset(("reshape",))).items():
        method = code.operations[reshape.function]
        if not isinstance(method, s.Attribute) or len(reshape.arguments) != 1 or reshape.arguments[0].star:
            continue
        shape = code.operations[code.root_of(reshape.arguments[0].value)]
        array = code.operations[shape.base] if isinstance(shape, s.Attribute) and shape.name == "shape" else None
        if not isinstance(shape, s.Attribute) or not isinstance(array, s.Load) or array.name != gathered.name:
            continue
        same = ev.reaching(frame, shape.base, array.name) == ev.reaching(frame, call.arguments[0].value, array.name)
        if same and _made_of(ev, frame, method.base) == gather:
            return number
    return None


def _made_of(ev: Evaluator, frame: Frame, number: int) -> int:
    """The operation that made an array, before conversions and casts."""
    code = frame.code
    for _ in range(_DEPTH):
        number = code.root_of(number)
        call = code.operations[number]
        if not isinstance(call, s.Call):
            return number
        method = code.operations[call.function]
        callee = certain(ev.value(frame, call.function))
        if isinstance(callee, External) and callee.name in _CONVERTERS and call.arguments:
            number = call.arguments[0].value
        elif isinstance(method, s.Attribute) and method.name in ("astype", "copy"):
            number = method.base
        else:
            break
    return number
