"""Functions that are passed on as values: their callers, and the axes bound there, are unknown."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


def escapes(ev: Evaluator, ref: FunctionRef) -> bool:
    """Whether a function is returned, stored in an object or a list, or passed to unknown code."""
    name = ev.project.function(ref).name
    own = ev.project.enclosing_class(ref) is None
    for other in ev.project.functions():
        if own and other.path != ref.path:
            continue
        if not own and name not in ev.project.modules[other.path].words:
            continue
        function = ev.project.function(other)
        named = [n for n, o in enumerate(function.operations) if isinstance(o, _NAMING[own]) and o.name == name]
        if any(_is_handed_on(ev, other, function, number) for number in named):
            return True
    return False


_NAMING: dict[bool, type[s.Load] | type[s.Attribute]] = {True: s.Load, False: s.Attribute}


def _is_handed_on(ev: Evaluator, ref: FunctionRef, function: s.Function, number: int) -> bool:
    for operation in function.operations:
        if isinstance(operation, s.Return) and operation.value == number:
            return True
        if isinstance(operation, (s.StoreAttribute, s.StoreSubscript)) and operation.value == number:
            return True
        if isinstance(operation, s.Display) and number in operation.elements:
            return True
        if isinstance(operation, s.DictDisplay) and number in operation.values:
            return True
        if isinstance(operation, s.Call) and any(argument.value == number for argument in operation.arguments):
            # A library runs its argument as it is: `app.run(main)`. The result of a partial is passed on.
            callee = certain(ev.value(ev.free_frame(ref), operation.function))
            known = ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            return not isinstance(callee, External) or (known is not None and known.kind == "currying")
    return False
