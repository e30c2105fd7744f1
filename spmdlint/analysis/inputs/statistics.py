"""Running statistics of normalisation layers that each device keeps for itself, and that are never averaged.

The body of a map over rows that asks a flax model for its new statistics gets those of one device's rows. For training,
that is what most programs want; for evaluation and saving, they have to be averaged first, or computed by a layer that
knows the axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    ClassValue,
    Collection,
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    Values,
    certain,
)
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.typing import typing_table
from spmdlint.program import summary as s
from spmdlint.program.idle import AVERAGING
from spmdlint.program.link import FunctionRef

STATISTICS = "batch_stats"
_STATES = ("stat", "variables", "mutable")
_ANY_TREE = frozenset(("x", "tree", "t", "leaf"))
_SPREADING = frozenset(("axis_name", "bn_axis_name", "cross_replica_axis"))


class OwnStatistics(Struct, frozen=True):
    """Where a body stores new statistics, where it asks the model for them, and the map that runs it."""

    site: Site
    asked: Site
    map: Site


class Statistics:
    """Finds such statistics if no file connected with theirs averages statistics. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach

    def found(self) -> Iterator[OwnStatistics]:
        """Every call in a body that stores new statistics in a state."""
        kept = dict.fromkeys(found for use in self.reach.uses for found in self._of_use(use))
        component = self.ev.project.component
        averaged = {number: self._averaged(number) for number in {component[each.site.ref.path] for each in kept}}
        yield from (each for each in kept if not averaged[component[each.site.ref.path]])

    def _of_use(self, use: MapUse) -> Iterator[OwnStatistics]:
        known = self.ev.knowledge.get(use.applied.name)
        if known is None or not known.by_hand:
            return
        for function in self.calls.functions_in(known, use.applied.arguments):
            body = self._unwrapped(function)
            refs = self._run_by(body.ref) if isinstance(body, FunctionValue) else []
            asked = next((Site(ref, number) for ref in refs for number in self._asks(ref)), None)
            for ref in refs if asked is not None else ():
                for number in self._kept(ref):
                    if asked is not None:
                        yield OwnStatistics(Site(ref, number), asked, use.site)
            for ref in refs if asked is None else ():
                for number, returned in self._put_in_records(ref):
                    yield OwnStatistics(Site(ref, number), Site(ref, returned), use.site)

    def _put_in_records(self, ref: FunctionRef) -> Iterator[tuple[int, int]]:
        """New statistics that a new state of the project's own class gets, and the call that has returned them.

        A model that is no library's returns them itself; it is known to do so by the name and the field.
        """
        frame = self.ev.free_frame(ref)
        for _, call in frame.code.of_kind(s.Call):
            cls = certain(self.ev.value(frame, call.function))
            fields = self.ev.objects.field_names(cls) if isinstance(cls, ClassValue) else None
            if fields is None or STATISTICS not in fields:
                continue
            value = passed(call, STATISTICS, tuple(fields))
            item = frame.code.operations[resolved(self.ev, frame, value)] if value is not None else None
            if value is None or not isinstance(item, s.Item) or not self._is_result(ref, value):
                continue
            if isinstance(frame.code.operations[item.value], s.Call):
                yield value, item.value

    def _run_by(self, body: FunctionRef) -> list[FunctionRef]:
        """A function, the functions defined in it, and those that they call, in the order of the text."""
        functions = self.ev.project.modules[body.path].summary.functions
        found = {body}
        for function in functions[body.index + 1 :]:
            if function.parent is not None and FunctionRef(body.path, function.parent) in found:
                found.add(FunctionRef(body.path, function.index))
        pending = list(found)
        while pending:
            called = self._called.get(pending.pop(), set()) - found
            found |= called
            pending += called
        return sorted(found)

    @cached_property
    def _called(self) -> dict[FunctionRef, set[FunctionRef]]:
        found: dict[FunctionRef, set[FunctionRef]] = {}
        for frame, edges in self.reach.edges.items():
            found.setdefault(frame.ref, set()).update(edge.target.frame.ref for edge in edges)
        return found

    def _kept(self, ref: FunctionRef) -> Iterator[int]:
        """The places where new statistics are stored in a state, or in a tree of variables."""
        code = self.ev.code(ref)
        for number, call in code.of_kind(s.Call):
            if any(argument.keyword == STATISTICS for argument in call.arguments):
                yield number
        given = set(self._asks(ref))
        read = {argument.value for _, call in code.of_kind(s.Call) for argument in call.arguments}
        for number, table in code.of_kind(s.DictDisplay):
            for key, value in zip(table.keys, table.values, strict=True):
                named = code.operations[key] if key is not None else None
                if not isinstance(named, s.Const) or named.value != STATISTICS or number in read:
                    continue  # an argument for a model to compute with
                if self._is_given(ref, value, given) or self._is_result(ref, value):
                    yield value

    def _is_result(self, ref: FunctionRef, number: int) -> bool:
        """Whether it is one of several results that a call has just returned, named as statistics."""
        frame = self.ev.free_frame(ref)
        load = frame.code.operations[number]
        item = frame.code.operations[resolved(self.ev, frame, number)]
        return isinstance(load, s.Load) and _STATES[0] in load.name and isinstance(item, s.Item)

    def _is_given(self, ref: FunctionRef, number: int, asked: set[int]) -> bool:
        """Whether it is ``new["batch_stats"]`` of what a model has just returned."""
        frame = self.ev.free_frame(ref)
        read = frame.code.operations[number]
        if not isinstance(read, s.Subscript) or not _reads(frame, number):
            return False
        item = frame.code.operations[resolved(self.ev, frame, read.base)]
        return isinstance(item, s.Item) and item.index == 1 and item.value in asked

    def _asks(self, ref: FunctionRef) -> Iterator[int]:
        """The calls of a model that ask for its new statistics."""
        frame = self.ev.free_frame(ref)
        for number, call in frame.code.of_kind(s.Call):
            for argument in call.arguments:
                if argument.keyword == "mutable" and _names(self.ev.value(frame, argument.value)):
                    yield number

    # -- code that averages them

    def _averaged(self, component: int) -> bool:
        """Whether any of the connected files averages statistics, or says that it does."""
        project = self.ev.project
        refs = (ref for ref in project.functions() if project.component[ref.path] == component)
        return any(self._averages(self.ev.free_frame(ref)) for ref in refs)

    def _averages(self, frame: Frame) -> bool:
        name = frame.code.function.name.lower()
        if any(word in name for word in AVERAGING) and frame.code.function.kind != "module":
            return True
        for _, call in frame.code.of_kind(s.Call):
            given = [argument.value for argument in call.arguments]
            callees = self.ev.value(frame, call.function)
            names = {callee.name for callee in callees if isinstance(callee, (External, Applied))}
            if names & typing_table().rows.reductions and any(self._is_state(frame, value) for value in given):
                return True
            spread = any(argument.keyword in _SPREADING for argument in call.arguments)
            # A layer may be given its axis before it is made: partial(nn.BatchNorm, axis_name="batch").
            told = callees if "functools.partial" not in names else self.ev.value(frame, given[0]) if given else ()
            if spread and not any(self._is_map(callee) for callee in told):
                return True
            # A map over them, `pmap(lambda x: pmean(x, axis), axis)(state.batch_stats)`; a derivative is not such a
            # map.
            mapped = any(self._is_map(callee) and not self._derives(callee) for callee in callees)
            if mapped and any(_reads(frame, value) for value in given):
                return True
        return False

    def _is_map(self, callee: object) -> bool:
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, (External, Applied)) else None
        return known is not None and known.kind in ("map", "transform", "collective", "currying")

    def _unwrapped(self, function: Value) -> Value | None:
        """The function of a partial; any other function itself."""
        known = self.ev.knowledge.get(function.name) if isinstance(function, Applied) else None
        if not isinstance(function, Applied) or known is None or known.kind != "currying":
            return function
        return certain(function.arguments.positional[0]) if function.arguments.positional else None

    def _derives(self, callee: object) -> bool:
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, Applied) else None
        return known is not None and known.kind == "transform"

    @staticmethod
    def _is_state(frame: Frame, number: int) -> bool:
        """Whether more than gradients and numbers is averaged, judging by its name."""
        operation = frame.code.operations[number]
        if isinstance(operation, s.Display):
            return any(Statistics._is_state(frame, element) for element in operation.elements)
        name = operation.name if isinstance(operation, (s.Load, s.Attribute)) else ""
        return _reads(frame, number) or name in _ANY_TREE or any(word in name.lower() for word in _STATES)


def _reads(frame: Frame, number: int) -> bool:
    """Whether a value is the statistics of something."""
    operation = frame.code.operations[frame.code.root_of(number)]
    if isinstance(operation, s.Attribute):
        return operation.name == STATISTICS
    key = frame.code.operations[operation.index] if isinstance(operation, s.Subscript) else None
    return isinstance(key, s.Const) and key.value == STATISTICS


def _names(values: Values) -> bool:
    """Whether a value is the name of the statistics, or a list with that name."""
    listed = [each for value in values if isinstance(value, Collection) for each in value.elements]
    return Constant(STATISTICS) in values or any(_names(each) for each in listed)
