"""Local steps of training: a map that lets each device train for itself, and another that averages the parameters.

That is local SGD (Stich, "Local SGD Converges Fast and Communicates Little", 2019) or DiLoCo: no gradient is reduced.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, Value, certain
from spmdlint.analysis.meshtypes.symbols import bound_axes
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s


def averaged_later(ev: Evaluator, calls: Calls, table: Typing, sites: Iterable[Site], axis: str) -> bool:
    """Whether the host passes what the calls of a map give it to a map that only takes means over an axis."""
    return any(_is_averaged(ev, calls, table, site, axis) for site in sites)


def _is_averaged(ev: Evaluator, calls: Calls, table: Typing, site: Site, axis: str) -> bool:
    frame = ev.free_frame(site.ref)
    code, operations = frame.code, frame.code.operations
    held = {code.root_of(site.number)}
    held |= {number for number, item in code.of_kind(s.Item) if code.root_of(item.value) in held}
    stored = [(s.Load, each.name, each.value) for _, each in code.of_kind(s.Store)]
    fields = [(s.Attribute, each.name, each.value) for _, each in code.of_kind(s.StoreAttribute)]
    kept = {(kind, name) for kind, name, value in (*stored, *fields) if code.root_of(value) in held}
    for number, call in code.of_kind(s.Call):
        given = [operations[argument.value] for argument in call.arguments]
        passes = any((type(each), getattr(each, "name", None)) in kept for each in given)
        mapped = certain(ev.value(frame, call.function)) if passes and number != site.number else None
        known = ev.knowledge.get(mapped.name) if isinstance(mapped, Applied) else None
        if known is None or known.kind != "map" or not isinstance(mapped, Applied):
            continue
        functions = list(calls.functions_in(known, mapped.arguments))
        means = bool(functions) and all(_takes_means(ev, table, each) for each in functions)
        if means and axis in bound_axes(calls, mapped).names:
            return True
    return False


def _takes_means(ev: Evaluator, table: Typing, function: Value) -> bool:
    """Whether all that a function returns is the mean of what it is given, or of the leaves of that."""
    if not isinstance(function, FunctionValue):
        return isinstance(function, External) and table.rules.get(function.name) == "pmean"
    frame = ev.free_frame(function.ref)
    returned = [given.value for _, given in frame.code.returns if given.value is not None]
    return bool(returned) and all(_is_mean(ev, table, frame, value) for value in returned)


def _is_mean(ev: Evaluator, table: Typing, frame: Frame, number: int) -> bool:
    operations = frame.code.operations
    call = operations[frame.code.root_of(number)]
    if not isinstance(call, s.Call) or not call.arguments:
        return False
    callee = certain(ev.value(frame, call.function))
    first, last = (frame.code.root_of(call.arguments[place].value) for place in (0, -1))
    rule = table.rules.get(callee.name) if isinstance(callee, External) else None
    if rule == "pmean":
        return isinstance(operations[first], s.Parameter)
    mapper = certain(ev.value(frame, call.arguments[0].value))
    if rule != "tree" or mapper is None or not isinstance(operations[last], s.Parameter):
        return False
    return _takes_means(ev, table, mapper)
