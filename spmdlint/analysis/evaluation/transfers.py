"""What passes through a call of a library's function, or of a method of an object of which nothing else is known.

The knowledge has a row for each such function and method. Every walk that follows one facet of a value asks here.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import ClassValue, Constant, External, Frame, Free, FunctionValue
from spmdlint.knowledge.load import Facet, Knowledge, Known
from spmdlint.program import summary as s

_ENDLESS = frozenset((Constant(None), Constant(-1)))


def through(knowledge: Knowledge, name: str, call: s.Call, facet: Facet) -> Sequence[int]:
    """The arguments of a call of a library's function with which its result has a facet in common."""
    known = passing(knowledge, name, facet)
    if known is None:
        return ()
    return _given(known, call) if known.through else [argument.value for argument in call.arguments]


def passing(knowledge: Knowledge, name: str, facet: Facet) -> Known | None:
    """The row of a library's function whose result has a facet in common with its arguments; None if it has not."""
    known = knowledge.transfer(name) or knowledge.named_alike(name)
    return known if known is not None and known.passes is not None and facet in known.passes else None


def rows_of(ev: Evaluator, frame: Frame, call: s.Call) -> list[Known]:
    """What is known of the functions of libraries that a call may run; of a method that is nobody's, by its name."""
    callees = list(ordered(ev.value(frame, call.function)))
    found = [ev.knowledge.get(callee.name) for callee in callees if isinstance(callee, External)]
    method = frame.code.operations[call.function]
    own = any(isinstance(callee, (FunctionValue, ClassValue)) for callee in callees)
    if not found and isinstance(method, s.Attribute) and not own:
        found = [row_of_method(ev, frame, method.name)]
    return [known for known in found if known is not None]


def row_of_method(ev: Evaluator, frame: Frame, name: str) -> Known | None:
    """What is known of a method of an unknown object by its name, if the file imports what has such objects."""
    known = ev.knowledge.methods.get(name)
    if known is not None and known.needs:
        imports = ev.project.modules[frame.ref.path].imports
        return known if any(each.module.split(".")[0] in known.needs for each in imports) else None
    return known


def through_method(ev: Evaluator, frame: Frame, call: s.Call, facet: Facet) -> Sequence[int]:
    """The same for a method of an unknown object: the object itself, unless the row names parameters."""
    method = frame.code.operations[call.function]
    if any(isinstance(callee, FunctionValue) for callee in ev.value(frame, call.function)):
        return ()
    known = ev.knowledge.methods.get(method.name) if isinstance(method, s.Attribute) else None
    if not isinstance(method, s.Attribute) or known is None or known.passes is None or facet not in known.passes:
        return ()
    if known.when is not None and facet == "size":
        count = passed(call, known.when, known.positional)
        given = ev.value(frame, count) if count is not None else _ENDLESS
        left_out = (ev.default_of(frame.ref, frame.outer, each.name) for each in given if isinstance(each, Free))
        defaults = (v for n in left_out if n is not None and frame.outer for v in ev.value(frame.outer, n))
        if any(value in _ENDLESS for value in (*given, *defaults)):
            return ()
    return _given(known, call) if known.through else (method.base,)


def shape_given(knowledge: Knowledge, name: str, call: s.Call) -> int | None:
    """The shape that a call gives to the new array which it makes."""
    known = knowledge.transfer(name)
    if known is None or known.shaped_by is None:
        return None
    return passed(call, known.shaped_by, known.positional)


def whole_result(known: Known, call: s.Call) -> int | None:
    """The place, among the results of a function that selects elements, of the one that has an element for each."""
    if not known.selects:
        return None
    results = known.positional[1 : known.positional.index(known.selects) + 1]
    asked = [each for each in results if passed(call, each, known.positional) is not None]
    return len(asked) if known.selects in asked else None


def _given(known: Known, call: s.Call) -> Sequence[int]:
    return [value for each in known.through if (value := passed(call, each, known.positional)) is not None]
