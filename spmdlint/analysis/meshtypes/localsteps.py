"""Local steps of training: a map that lets each device, or each process, train for itself.

With another map that averages the parameters, that is local SGD (Stich, "Local SGD Converges Fast and Communicates
Little", 2019) or DiLoCo: no gradient is reduced. Without one, the models drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, Value, certain, constant
from spmdlint.analysis.meshtypes.symbols import bound_axes
from spmdlint.analysis.placement.kinds import OWN_DEVICES
from spmdlint.analysis.placement.questions import Placement
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.typing import Typing, typing_table
from spmdlint.program import summary as s


class KeptGradients(Struct, frozen=True):
    """Where gradients are reduced along an axis of a map over the devices of one process, that map, and its devices."""

    site: Site
    map: Site
    devices: Site
    body: str
    axis: str


def kept_gradients(calls: Calls, reach: Reach, placement: Placement, multi: MultiProcess) -> Iterator[KeptGradients]:
    """The training steps of several processes whose reductions stay within one process."""
    for use in reach.uses:
        known = calls.knowledge.get(use.applied.name)
        named = bound_axes(calls, use.applied).names
        if known is None or not known.by_hand or len(named) != 1 or use.frame.ref in reach.traced:
            continue
        devices = _own_devices(placement, use, known)
        if devices is None or not multi.surely_runs_several(use.frame.ref.path):
            continue
        for frame in _run_by(reach, use):
            reduced = _reduced(calls.ev, frame, min(named))
            if reduced is not None:
                yield KeptGradients(reduced, use.site, devices, frame.code.function.name, min(named))
                break


def _run_by(reach: Reach, use: MapUse) -> list[Frame]:
    """What a map runs, and what that calls, such as a step that a scan repeats."""
    found = [edge.target.frame for edge in reach.edges.get(use.frame, ()) if edge.number == use.site.number]
    seen = set(found)
    for frame in found:
        new = dict.fromkeys(edge.target.frame for edge in reach.edges.get(frame, ()))
        found += [each for each in new if each not in seen]
        seen |= new.keys()
    return found


def _own_devices(placement: Placement, use: MapUse, known: Known) -> Site | None:
    """Where a map is given devices, if they are this process's."""
    call = use.frame.code.operations[use.site.number]
    given = passed(call, "devices", known.positional) if isinstance(call, s.Call) else None
    if given is not None:
        own = placement.surely(OWN_DEVICES, use.frame, given) is not None
        return Site(use.frame.ref, given) if own else None
    devices = certain(placement.ev.argument(use.applied, "devices") or frozenset())
    return use.site if isinstance(devices, Applied) and devices.name in placement.table.local else None


def _reduced(ev: Evaluator, frame: Frame, axis: str) -> Site | None:
    """The reduction over an axis in a function that takes derivatives, or in which one is defined that does."""
    rows, path, within = typing_table().rows, frame.ref.path, {frame.ref.index: frame.ref}
    reductions = frozenset(name.rpartition(".")[2] for name in rows.reductions)
    for function in ev.project.modules[path].summary.functions[frame.ref.index + 1 :]:
        if function.parent in within:
            within[function.index] = ev.project.ref(path, function.index)
    if not any(ev.code(each).mentions(rows.derivatives) for each in within.values()):
        return None
    for each in within.values():
        inside = frame if each == frame.ref else ev.free_frame(each)
        for number, call in inside.code.calls_named(reductions).items():
            given = (constant(ev.value(inside, argument.value)) for argument in call.arguments)
            over = [axes.value for axes in given if axes is not None]
            if axis in over or not over:
                return Site(each, number)
    return None


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
        mapped = ev.callee(frame, call) if passes and number != site.number else None
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
    callee = ev.callee(frame, call)
    first, last = (frame.code.root_of(call.arguments[place].value) for place in (0, -1))
    rule = table.rules.get(callee.name) if isinstance(callee, External) else None
    if rule == "pmean":
        return isinstance(operations[first], s.Parameter)
    mapper = certain(ev.value(frame, call.arguments[0].value))
    if rule != "tree" or mapper is None or not isinstance(operations[last], s.Parameter):
        return False
    return _takes_means(ev, table, mapper)
