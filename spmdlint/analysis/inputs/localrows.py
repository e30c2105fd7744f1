"""Numbers from this process's rows only, which process 0 reports as if they were those of all processes.

The outputs of a map over rows, and the addressable shards of an array, are what the devices of this process hold. What
the host computes from them is a number of this process, whatever the name of the metric says.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.participants import on_local_devices
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Site,
    certain,
)
from spmdlint.analysis.meshtypes.outputs import Outputs
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.guarded import guarded
from spmdlint.analysis.variance.length import is_called_own_part
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.files import names
from spmdlint.knowledge.reading import named, reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import operands

_DEPTH = 2
"""How many functions of the project a number is followed into, to where it is told."""
_CARRIERS = frozenset(names("row_carriers"))
_CARRIERS |= {"collections.Counter"}
_MADE_OF = (s.Item, s.Unary, s.Binary, s.Compare, s.BoolOp, s.Display, s.FString, s.Next)
_PRINT = "builtins.print"
"""The one of Python's own functions that tells a number to somebody, as a logger does."""
_STATISTICS = frozenset("mean average std var cov median percentile quantile corrcoef histogram".split())
# What shows some examples to a person: no statistic, so nothing to reduce.
_SAMPLES = frozenset(
    "Image Video Audio Html Table Histogram imshow imsave imwrite savefig add_image add_images add_figure "
    "add_video add_audio add_histogram write_image write_images write_videos write_histograms".split()
)
_HELD = "these are the parts that this process holds"
PARTS = "parts"
LISTED = "listed parts"
NAMED = "named"
"""Kinds of reasons: parts of an array over the devices of all processes, parts of an array that most likely is such,
and a process's own part by its name.
"""
_PARTS = frozenset(("addressable_shards", "addressable_data"))


class LocalNumber(Struct, frozen=True):
    """A number from this process's rows that only some processes report: the call, the condition, and its origin.

    ``also`` are further calls under the same condition that report what comes from there.
    """

    site: Site
    guard: Site
    reason: Reason
    also: tuple[Site, ...] = ()


class LocalRows(Property):
    """The value is computed only from rows of this process's devices."""

    def __init__(self, outputs: Outputs, placement: Placement, control: Control) -> None:
        self.control = control
        self.outputs = outputs
        self.placement = placement

    def components(self, evaluator: Evaluator) -> frozenset[int]:
        """The components that can have such values: those with maps over rows, or that ask for parts."""
        project = evaluator.project
        refs = [mapped.use.frame.ref for mapped in self.outputs.bodies.mapped()]
        for ref in project.functions():
            code = evaluator.code(ref)
            asks = any(operation.name in _PARTS for _, operation in code.of_kind(s.Attribute))
            if asks or any(is_called_own_part(formal.name) for formal in code.function.formals):
                refs.append(ref)
        return frozenset(project.component[ref.path] for ref in refs)

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, (s.Call, s.Item, s.Subscript, s.Attribute)):
            differs = self.outputs.differs(frame, number)
            if differs is not None:
                text = "a process gets only the rows of its own devices"
                return Reason(Site(frame.ref, number), text, "rows") if differs else None
        if isinstance(operation, s.Attribute) and operation.name in _PARTS:
            if self.placement.split(frame, operation.base):
                return Reason(Site(frame.ref, number), _HELD, PARTS)
            return None
        if isinstance(operation, s.Next):
            # A loop over all parts of an array wants its rows, not one of its copies.
            parts = frame.code.operations[frame.code.root_of(operation.iterable)]
            if isinstance(parts, s.Attribute) and parts.name == "addressable_shards":
                return Reason(Site(frame.ref, operation.iterable), _HELD, LISTED)
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        if isinstance(operation, s.Load):
            return _filled(origins, frame, number, operation) or CONTINUE
        if isinstance(operation, s.Attribute):
            return None if operation.name in reading().properties else origins.why(frame, operation.base) or CONTINUE
        if isinstance(operation, s.Item):
            found = of_element(origins, frame, operation)
            if found != CONTINUE:
                return found
        inside = _operands(operation)
        return origins.any_of(frame, inside) if inside else CONTINUE

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """Why a parameter that its author called local is this process's own, if no call of its function is known."""
        if not isinstance(operation, s.Parameter) or not is_called_own_part(operation.name):
            return None
        if any(edge.target.way == "call" for edge in origins.reach.callers.get(frame.ref, ())):
            return None
        text = f"{operation.name!r} is this process's own part, judging by its name"
        return Reason(Site(frame.ref, number), text, NAMED)

    def stored(self, origins: Origins, ref: FunctionRef, number: int) -> Reason | None:
        """Why a field is set only where such a number says so: for example, for how long there was no improvement."""
        frame = origins.frame_of(ref)
        is_field = isinstance(origins.ev.function(frame).operations[number], s.StoreAttribute)
        return guarded(origins, self.control, frame, number) if is_field else None

    @staticmethod
    def _call(origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        arguments = [argument.value for argument in operation.arguments]
        callees = origins.ev.value(frame, operation.function)
        for callee in ordered(callees):
            if isinstance(callee, External):
                known = origins.ev.knowledge.get(callee.name)
                if known is not None and known.agreement:
                    return None
                carries = callee.name in _CARRIERS or named(callee.name, reading().carrying)
                found = origins.any_of(frame, arguments) if carries else None
                if found is None or callee.name.rpartition(".")[2] not in _STATISTICS:
                    return found
                return origins.step(frame, number, f"{callee.name}() of them covers this process's rows only", found)
            if isinstance(callee, (FunctionValue, Instance)):
                return CONTINUE
            # A function compiled for one device runs there, on this process's part if it is given that.
            if isinstance(callee, Applied) and (on_local_devices(callee) or callee.arguments.keyword("device")):
                return origins.any_of(frame, arguments)
            if isinstance(callee, Member) and isinstance(callee.base, (Applied, Called)):  # an object of a library
                found = origins.any_of(frame, arguments)
                if found is not None:
                    return found
        method = origins.ev.function(frame).operations[operation.function]
        if isinstance(method, s.Attribute) and method.name == "format":
            return origins.any_of(frame, arguments)
        return origins.why(frame, method.base if method.name not in _PARTS else operation.function) if isinstance(
            method, s.Attribute
        ) else None  # fmt: skip


def _filled(origins: Origins, frame: Frame, number: int, load: s.Load) -> Reason | None:
    """Why a list or an array has such rows: a loop has put them into it, and the name still refers to it."""
    if not frame.code.function.binds(load.name):
        return None
    for place in filling_of(origins.ev, frame, number):
        put = frame.code.operations[place]
        if isinstance(put, s.Call):
            found = origins.any_of(frame, [argument.value for argument in put.arguments])
        else:
            found = origins.why(frame, put.value) if isinstance(put, s.StoreSubscript) else None
        if found is not None:
            return origins.step(frame, place, f"it is put into {load.name!r}", found)
    return None


def _operands(operation: s.Operation) -> tuple[int, ...]:
    if isinstance(operation, s.Subscript):
        return (operation.base,)
    if isinstance(operation, s.DictDisplay):
        return operation.values
    if isinstance(operation, s.Collected):
        return (operation.element,)
    if isinstance(operation, s.Compare) and any(test in ("is", "is not") for test in operation.operators):
        return ()  # whether there is a value is a separate question from which value it is
    return operands(operation) if isinstance(operation, _MADE_OF) else ()


class RowConditions:
    """Conditions on such values: each process decides by the rows of its own devices. One per run."""

    def __init__(self, evaluator: Evaluator, what: LocalRows, rows: Origins) -> None:
        self.rows = rows
        self._possible = what.components(evaluator)
        self._component = evaluator.project.component

    def why(self, frame: Frame, test: int) -> Reason | None:
        """Why a condition is one on such rows; the reason has the kind of a process's own data."""
        if self._component[frame.ref.path] not in self._possible:
            return None
        found = self.rows.why(frame, test)
        if found is None or found.source.kind == LISTED or found.source.site.ref.path != frame.ref.path:
            return None  # in a library that is given such rows among many other values
        kind = NAMED if found.source.kind == NAMED else "data"
        return Reason(Site(frame.ref, test), "it is computed from these rows only", kind, found)


class LocalNumbers:
    """Finds such numbers that are reported under a condition on the process index."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        what: LocalRows,
        rows: Origins,
        variance: Origins,
        multi: MultiProcess,
    ) -> None:
        self.ev = evaluator
        self.multi = multi
        self.what = what
        self.reach = reach
        self.rows = rows
        self.variance = variance
        self.control = evaluator.once(Control)

    def found(self) -> Iterator[LocalNumber]:
        """Every call, except of the project's own functions, that only some processes make with such a number."""
        possible = self.what.components(self.ev)
        component = self.ev.project.component
        for ref in self.ev.project.functions():
            if component[ref.path] not in possible or ref in self.reach.traced:
                continue
            if not self.multi.runs_several(ref.path):
                continue  # no code there asks for the process index
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            innermost: dict[int, tuple[int, LocalNumber]] = {}
            for branch in self.control.branches(ref):
                if branch.block not in live:
                    continue
                # Few branches test for the process, and that is cheaper to find out than which calls are given rows.
                guard = self.variance.why(frame, branch.test)
                if guard is None or guard.kind != "identity":
                    continue
                for arm in (branch.yes, branch.no):
                    for number, reason in self._told(frame, sorted(arm & live)):
                        found = LocalNumber(Site(ref, number), Site(ref, branch.test), reason)
                        nearer = number not in innermost or len(arm) < innermost[number][0]
                        if nearer and not _made_in(frame, arm, reason):
                            innermost[number] = (len(arm), found)
            calls = frame.code.calls_in(sorted(live))
            silent = {number: test for number, call in calls if (test := self._switched_off(frame, call)) is not None}
            for number, reason in self._told(frame, sorted(live)) if silent else ():
                if number in silent:
                    innermost.setdefault(number, (0, LocalNumber(Site(ref, number), silent[number], reason)))
            alike: dict[tuple[Site, Site], list[LocalNumber]] = {}
            for _, (_, found) in sorted(innermost.items()):
                alike.setdefault((found.guard, found.reason.source.site), []).append(found)
            for first, *others in alike.values():
                yield replace(first, also=tuple(other.site for other in others))

    def _switched_off(self, frame: Frame, call: s.Call) -> Site | None:
        """The condition on the process index with which the object was made that a call reports to."""
        method = frame.code.operations[call.function]
        if not isinstance(method, s.Attribute):
            return None
        for made in ordered(self.ev.value(frame, method.base)):
            if not isinstance(made, (Applied, Called)):
                continue
            maker = self.ev.free_frame(made.site.ref)
            making = maker.code.operations[made.site.number]
            for argument in making.arguments if isinstance(making, s.Call) else ():
                if isinstance(maker.code.operations[maker.code.root_of(argument.value)], (s.Compare, s.Unary)):
                    reason = self.variance.why(maker, argument.value)
                    if reason is not None and reason.kind == "identity":
                        return Site(maker.ref, argument.value)
        return None

    def _told_by(self, frame: Frame, number: int, call: s.Call, callee: FunctionValue, depth: int) -> Reason | None:
        """Why a function of the project tells such rows that a call passes it."""

        def told(inner: Frame) -> Reason | None:
            found = self._told(inner, sorted(self.ev.live_blocks(inner)), depth - 1) if depth else ()
            return next((reason for _, reason in found), None)

        return self.rows.in_call(frame, number, call, callee, told)

    def _told(self, frame: Frame, blocks: list[int], depth: int = _DEPTH) -> Iterator[tuple[int, Reason]]:
        """The calls in some blocks that are given rows of this process, and the reasons of these rows."""
        kept = {put for puts in frame.code.filling.values() for put in puts}
        for number, operation in frame.code.calls_in(blocks):
            if operation.decorator or number in kept or not (tells := self._tells(frame, operation)):
                continue
            found = self.rows.any_of(frame, [argument.value for argument in operation.arguments])
            if found is not None and isinstance(tells, FunctionValue):
                found = self._told_by(frame, number, operation, tells, depth)
            if found is None or found.source.kind == NAMED:
                continue  # a program may well show the examples of one process
            if self._says_whose(frame, operation):
                continue
            if found.source.kind != LISTED or found.source.site.ref.path == frame.ref.path:
                yield number, found

    def _says_whose(self, frame: Frame, operation: s.Call) -> bool:
        """Whether a report tells which process it is of, so that nobody takes its numbers for those of all."""
        told = [self._parts(frame, argument.value) for argument in operation.arguments]
        reasons = [self.variance.why(frame, part) for parts in told for part in parts]
        return any(reason is not None and reason.kind == "identity" for reason in reasons)

    @staticmethod
    def _parts(frame: Frame, number: int) -> tuple[int, ...]:
        """What is told in an argument: the values of a dictionary, or the argument itself."""
        operation = frame.code.operations[frame.code.root_of(number)]
        return operation.values if isinstance(operation, s.DictDisplay) else (number,)

    def _tells(self, frame: Frame, operation: s.Call) -> FunctionValue | bool:
        """Whether a call ends the flow of a number: its function is unknown, as a writer of logs is.

        A function of the project may lead to one.
        """
        callees = self.ev.value(frame, operation.function)
        method = frame.code.operations[operation.function]
        names = [callee.name.rpartition(".")[2] for callee in callees if isinstance(callee, External)]
        if not _SAMPLES.isdisjoint((getattr(method, "name", ""), *names)):
            return False
        own, computing = certain(callees), reading().carrying | {"builtins."}
        if isinstance(own, FunctionValue):
            return own
        return not any(
            isinstance(callee, FunctionValue)
            or (isinstance(callee, External) and callee.name != _PRINT and named(callee.name, computing))
            or (isinstance(callee, Applied) and self.ev.kind(callee) in ("map", "jit", "transform"))
            for callee in callees
        )


def _made_in(frame: Frame, arm: frozenset[int], reason: Reason) -> bool:
    """Whether the rows are computed under the branch, so that the other processes have none that could be missing."""
    if reason.source.kind in (PARTS, LISTED):
        return False  # they are merely accessed there
    made = [_made_at(frame.code, step.site.number) for step in reason.chain() if step.site.ref == frame.ref]
    return bool(made) and all(frame.code.function.block_of[number] in arm for number in made)


def _made_at(code: Code, number: int) -> int:
    """The operation that makes the value of which one is a part."""
    number = code.root_of(number)
    whole = code.operations[number]
    return _made_at(code, operands(whole)[0]) if isinstance(whole, (s.Subscript, s.Attribute, s.Item)) else number
