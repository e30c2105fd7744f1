"""Functions that are handed on as values: who calls them, and what is bound around them there, nobody sees."""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


def escapes(ev: Evaluator, ref: FunctionRef) -> bool:
    """Is a function returned, stored in an object or a list, or given to code that is not known."""
    name = ev.project.function(ref).name
    own = ev.project.enclosing_class(ref) is None
    for other in ev.project.functions():
        if own and other.path != ref.path:
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
            # A library runs what it is given as it is: `app.run(main)`. What comes of a partial is handed on.
            callee = certain(ev.value(ev.free_frame(ref), operation.function))
            known = ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            return not isinstance(callee, External) or (known is not None and known.kind == "currying")
    return False
