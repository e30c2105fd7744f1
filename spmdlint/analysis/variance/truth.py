"""Whether a condition differs between processes: a name made of varying parts is never empty, and so always true."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.elements import Place, elements
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    Value,
    truth,
)
from spmdlint.analysis.variance.environment import variable_read
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.reason import surest
from spmdlint.analysis.variance.sources import source_function
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

_JOINS = "os.path.join"
_DEPTH = 3
_TRUTH = ("__bool__", "__len__")
PLAIN = frozenset(names("plain_bases"))
"""Bases from libraries whose objects are true unless a class says otherwise."""
_ALWAYS_TRUE = names("always_true")
_OF_DATA_SETS = frozenset("as_dataset as_numpy_iterator batch padded_batch prefetch repeat shard shuffle".split())


def of_truth(
    content: Origins, frame: Frame, test: int, depth: int = _DEPTH, asked: frozenset[Place] = frozenset()
) -> Reason | None:
    """Why a condition is true on some processes only; ``content`` says which values differ.

    ``asked`` are the places that lead to this question: a name that a loop gives itself again adds nothing.
    """
    ev = content.ev
    if (frame, test) in asked or _is_an_object(ev, frame, test):
        return None
    asked |= {(frame, test)}
    function = ev.function(frame)
    operation = function.operations[test]
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return of_truth(content, frame, operation.operand, depth, asked)
    if isinstance(operation, s.BoolOp):
        return surest(of_truth(content, frame, n, depth, asked) for n in operation.operands)
    if isinstance(operation, s.Load) and function.binds(operation.name):
        stores = sorted(ev.reaching(frame, test, operation.name))
        held = [n for n in stores if content.why(frame, n) is not None]
        if not held and (_is_filled(ev, frame, test, depth) or _is_chosen_anew(ev, frame, stores)):
            return None
        only_named = held and all(of_truth(content, frame, n, depth, asked) is None for n in held)
        return None if only_named else _asked(content, frame, test)
    if isinstance(operation, s.Store):
        return of_truth(content, frame, operation.value, depth, asked)
    if isinstance(operation, s.IfExp):
        arms = (operation.test, operation.body, operation.orelse)
        return surest(of_truth(content, frame, n, depth, asked) for n in arms)
    if isinstance(operation, s.Call) and (_is_iterable(ev, frame, test, depth) or _is_filled(ev, frame, test, depth)):
        return None  # always true, whatever it gives; how much was put into a list is a separate question
    if isinstance(operation, s.Item):
        places = list(elements(ev, frame, operation.value, operation.index))
        texts = [_is_text(ev, where, where.code.operations[value]) for where, value in places]
        # Several of them may be true or not, whichever tuple was chosen.
        if (len(places) == 1 or (places and all(texts))) and not any(
            of_truth(content, where, value, depth, asked) for where, value in places
        ):
            return None
    if _is_text(ev, frame, operation) or variable_read(ev, frame, operation) is not None:
        return None  # an environment variable is a text that is set or not, and even "0" is true
    found = _asked(content, frame, test)
    if found is not None and isinstance(operation, (s.Attribute, s.Parameter)):  # what is handed on
        found = surest(each for each in found.each() if not _is_always_true(ev, each))
    if found is None or not isinstance(operation, s.Parameter) or depth == 0:
        return found
    return found if _passed(content, frame, operation, depth, asked) else None


def _is_always_true(ev: Evaluator, reason: Reason) -> bool:
    """Whether a value is the name of a temporary file, which is never empty, or comes from a data set."""
    made = any(_is_iterable(ev, ev.free_frame(step.site.ref), step.site.number, 0) for step in reason.chain())
    return made or source_function(ev, reason).startswith(("tempfile.", *_ALWAYS_TRUE))


def _asked(content: Origins, frame: Frame, number: int) -> Reason | None:
    """Why a value differs, or what it answers if it is an object that is asked whether it is true."""
    return content.why(frame, number) or content.of_special(frame, number, number, "__bool__", "__len__")


def _is_an_object(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether a value may be an object that is always true, and nothing is known by which it would be false.

    Another that is chosen in its place is most likely true as well.
    """
    values = ev.value(frame, number)
    return any(_is_true(ev, value) for value in values) and not any(truth(frozenset((v,))) is False for v in values)


def _is_true(ev: Evaluator, value: Value) -> bool:
    if not isinstance(value, Instance):
        return not isinstance(value, Constant) and truth(frozenset((value,))) is True
    if any(base not in PLAIN for base in ev.objects.library_bases(value.cls)):
        return False
    own = (ev.project.methods(each.ref) for each in ev.objects.lineage(value.cls))
    return not any(name in methods for methods in own for name in _TRUTH)


def _is_chosen_anew(ev: Evaluator, frame: Frame, stores: Sequence[int]) -> bool:
    """Whether several texts are given to a name that is None at first: which of them it has does not matter here."""
    made = [frame.code.operations[n] for n in stores]
    values = [frame.code.operations[store.value] for store in made if isinstance(store, s.Store)]
    none = [isinstance(value, s.Const) and value.value is None for value in values]
    return none.count(True) == 1 and sum(_is_text(ev, frame, value) for value in values) > 1


def _is_iterable(ev: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether a value is a generator, or a data set of a library: objects that have no length."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Load) and frame.code.function.binds(operation.name) and depth:
        stores = ev.reaching(frame, number, operation.name)
        return bool(stores) and all(_is_iterable(ev, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Store):
        return _is_iterable(ev, frame, operation.value, depth)
    if not isinstance(operation, s.Call):
        return False
    called = ev.callee(frame, operation)
    callee = ev.through_partial(called)[0] if called is not None else None
    if isinstance(callee, External) and callee.name.startswith(_ALWAYS_TRUE):
        return True
    if not isinstance(callee, FunctionValue):
        method = frame.code.operations[operation.function]
        return isinstance(method, s.Attribute) and method.name in _OF_DATA_SETS
    if depth == 0 or ev.project.function(callee.ref).generator:
        return depth > 0
    return _gives_only(ev, callee, depth, _is_iterable)


def _is_filled(ev: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether a value is a list that is filled one by one, here or in the function that returns it."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Load):
        return bool(frame.code.filling.get(operation.name))
    callee = ev.callee(frame, operation)
    if not isinstance(callee, FunctionValue) or depth == 0:
        return False
    return _gives_only(ev, callee, depth, _is_filled)


def _gives_only(
    ev: Evaluator, callee: FunctionValue, depth: int, asks: Callable[[Evaluator, Frame, int, int], bool]
) -> bool:
    """Whether ``asks`` holds for everything that a function of the project returns."""
    inside = ev.free_frame(callee.ref)
    returned = [made.value for _, made in inside.code.of_kind(s.Return)]
    return bool(returned) and all(n is not None and asks(ev, inside, n, depth - 1) for n in returned)


def _passed(content: Origins, frame: Frame, parameter: s.Parameter, depth: int, asked: frozenset[Place]) -> bool:
    """Whether what some call passes for a parameter may be true on some processes only."""
    edges = content.reach.callers.get(frame.ref, ())
    function = content.ev.function(frame)
    for edge in edges:
        call = edge.caller.code.operations[edge.number]
        if edge.target.way != "call" or not isinstance(call, s.Call):
            return True
        bound = content.ev.project.enclosing_class(frame.ref) is not None
        value = passed_to(function, call, parameter.name, bound=bound)
        if value is not None and of_truth(content, edge.caller, value, depth - 1, asked) is not None:
            return True
    return not edges


def _is_text(ev: Evaluator, frame: Frame, operation: s.Operation) -> bool:
    """Whether a value is a path or a text that is never empty, whatever its varying parts are."""
    operations = ev.function(frame).operations
    if isinstance(operation, s.Const):
        return isinstance(operation.value, str) and bool(operation.value)
    if isinstance(operation, s.FString):
        return any(_is_text(ev, frame, operations[part]) for part in operation.parts)
    if isinstance(operation, s.Binary) and operation.operator == "+":
        return any(_is_text(ev, frame, operations[side]) for side in (operation.left, operation.right))
    if isinstance(operation, s.Call) and len(operation.arguments) > 1:
        callee = ev.callee(frame, operation)
        return isinstance(callee, External) and callee.name == _JOINS
    return False
