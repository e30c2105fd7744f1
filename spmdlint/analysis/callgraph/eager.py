"""Calls outside compiled functions that need all processes: they compute on, or transfer to, devices of several.

An operation of ``jax.numpy`` on one array works where the array is, and so do the methods of arrays and arithmetic.
Only an operation that combines the parts of an array communicates: most others are harmless on one process, and are
not reported.
"""

from __future__ import annotations

from spmdlint.analysis.callgraph.locality import DEPTH, EAGER, everywhere, makes_global
from spmdlint.analysis.callgraph.placement import names_no_axis, over_all
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, certain, constant
from spmdlint.knowledge.reading import reading
from spmdlint.knowledge.typing import typing_table
from spmdlint.program import summary as s

_PUT = "jax.device_put"
_NUMPY = "jax.numpy."
_REDUCTIONS = frozenset("all any argmax argmin average max mean median min prod std sum var".split())
_TOGETHER = frozenset(("concatenate", "vdot", "linalg.norm"))
_COMBINING = _REDUCTIONS | _TOGETHER
_OF_EACH_ELEMENT = frozenset(("linear", "sumlike", "quotient", "nonlinear"))
_MULTIPLY = "multiply"
_CONTRACTING = "@"
_OF_OBJECTS = frozenset(("is", "is not", "in", "not in"))


def computes_everywhere(ev: Evaluator, frame: Frame, call: s.Call, name: str) -> bool:
    """Whether a call of a library function, by its name, certainly needs the processes of all devices.

    A method of an array goes by the name of the function that it is, see :func:`method_of_array`.
    """
    if name == _PUT:
        place = passed(call, "device", ("x", "device"))
        return place is not None and over_all(ev, certain(ev.value(frame, place)))
    function = name.removeprefix(_NUMPY)
    if not name.startswith(_NUMPY) or function not in _COMBINING:
        return False
    array = _array(frame, call, _is_method(ev, frame, call))
    if array is None or (function in _REDUCTIONS and _keeps_rows(ev, frame, call)):
        return False
    return _is_spread(ev, frame, array, DEPTH, frozenset())


def method_of_array(ev: Evaluator, frame: Frame, call: s.Call) -> str | None:
    """The function that a call runs if what it calls is a method of an array; None if it calls no method."""
    method = frame.code.operations[call.function]
    if not isinstance(method, s.Attribute) or not _is_method(ev, frame, call):
        return None
    return typing_table().methods.module + method.name


def _is_method(ev: Evaluator, frame: Frame, call: s.Call) -> bool:
    """Whether a call is not known to run a function of a library: an attribute that it calls may be a method."""
    return not any(isinstance(callee, External) for callee in ev.value(frame, call.function))


def _array(frame: Frame, call: s.Call, method: bool) -> int | None:
    """The array that a call computes from: its first argument, or the one whose method it is."""
    if method:
        called = frame.code.operations[call.function]
        return called.base if isinstance(called, s.Attribute) else None
    return call.arguments[0].value if call.arguments and not call.arguments[0].star else None


def _keeps_rows(ev: Evaluator, frame: Frame, call: s.Call) -> bool:
    """Whether a reduction is along a dimension that is not split over processes."""
    axis = passed(call, "axis", ("axis",) if _is_method(ev, frame, call) else ("a", "axis"))
    along = constant(ev.value(frame, axis)) if axis is not None else None
    return axis is not None and (along is None or along.value not in (None, 0))


def _is_spread(ev: Evaluator, frame: Frame, number: int, depth: int, above: frozenset[int]) -> bool:
    """Whether the processes certainly hold different parts of an array, or of one array of a list.

    ``above`` are the values that are being looked at: one that is made of itself, in a loop, does not count.
    """

    def spread(*numbers: int) -> bool:
        return any(_is_spread(ev, frame, each, depth - 1, above | seen) for each in numbers)

    def says(operation: s.Operation, _depth: int) -> bool:
        if isinstance(operation, s.Display):
            return spread(*operation.elements)
        if isinstance(operation, s.Binary):
            return operation.operator != _CONTRACTING and spread(operation.left, operation.right)
        if isinstance(operation, s.Unary):
            return spread(operation.operand)
        if isinstance(operation, s.Compare):
            return _OF_OBJECTS.isdisjoint(operation.operators) and spread(*operation.operands)
        if isinstance(operation, s.Attribute):
            return operation.name in reading().views and spread(operation.base)
        if isinstance(operation, s.Call):
            if makes_global(ev, frame, operation, depth):
                return not _is_replicated(ev, frame, operation)
            return spread(*_keeping(ev, frame, operation))
        return False

    seen: set[int] = set(above)
    return everywhere(ev, frame, number, depth, says, seen)


def _keeping(ev: Evaluator, frame: Frame, call: s.Call) -> tuple[int, ...]:
    """The arrays of which any one decides where the result is, which is computed for each element or row."""
    callee = certain(ev.value(frame, call.function))
    name = callee.name if isinstance(callee, External) else method_of_array(ev, frame, call)
    method = _is_method(ev, frame, call)
    array = _array(frame, call, method)
    if name is None or array is None or not name.startswith(EAGER):
        return ()
    function = name.removeprefix(_NUMPY)
    if function in _REDUCTIONS:
        return (array,) if _keeps_rows(ev, frame, call) else ()
    typed = typing_table().of(name)
    if function in _TOGETHER or (typed not in _OF_EACH_ELEMENT and function != _MULTIPLY):
        return ()
    others = [argument.value for argument in call.arguments if not argument.star and argument.keyword is None]
    return (array,) if method or typed == "linear" else tuple(others)


def _is_replicated(ev: Evaluator, frame: Frame, made: s.Call) -> bool:
    """Whether an array is made with a spec that names no axis: every process then holds all of it."""
    return any(names_no_axis(ev, value) for given in made.arguments for value in ev.value(frame, given.value))
