"""Data that every process reads whole, although the batches made of it are meant for one process each.

Batches are meant for one process if their size was divided by the number of processes, or if they are passed on as a
process's own part of a global array. They are the same on all processes, or are drawn from the same examples, if
nothing in the program tells the processes apart where data is chosen: wherever a process asks which one it is, the
answer is compared with a constant, told, or makes a random key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import ClassValue, External, Frame, FunctionValue, Instance, Site, certain
from spmdlint.analysis.inputs.portions import KEEPS, Portion
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.inputs.rows import BATCHERS, CARRIES, Batches, Rows
from spmdlint.analysis.placement.kinds import copied
from spmdlint.analysis.variance.origins import CONTINUE, Origins, Property, Reason
from spmdlint.analysis.variance.sources import Sources
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s

_OWN = "identity"


class Unshared(Struct, frozen=True):
    """A data set that all processes read whole; ``reason`` leads to why its batches are meant for one of them."""

    site: Site
    reason: Reason
    divided: bool
    """Whether the size of its batches was divided by the number of processes; else they are passed on as a part."""


class Number(Property):
    """The value is the number of this process, or one that was computed from it; keys and texts are not."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, (s.Attribute, s.Subscript)):
            found = self.sources.of_name(frame, number)
            return found if found is not None and found.kind == _OWN else CONTINUE
        if isinstance(operation, s.Binary):
            return origins.any_of(frame, (operation.left, operation.right))
        if not isinstance(operation, s.Call):
            return CONTINUE if isinstance(operation, CARRIES) else None
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, External):
                if callee.name in KEEPS:
                    return origins.any_of(frame, [argument.value for argument in operation.arguments])
                found = self.sources.of_call(frame, number, operation, callee)
                return found if found is not None and found.kind == _OWN else None
        return CONTINUE


class UnsharedData:
    """Finds such data sets. ``sources`` say where a process asks for its number."""

    def __init__(self, like: Origins, sources: Sources, quantities: Quantities, multi: MultiProcess) -> None:
        self.ev = like.ev
        self.multi = multi
        self.table = quantities.table
        calls, reach = like.calls, like.reach
        self._number = Origins(self.ev, calls, reach, Number(sources))
        self._portion = Origins(self.ev, calls, reach, Portion(quantities, "process"))
        batches = Origins(self.ev, calls, reach, Batches(_of_any_size))
        self._loaded = Origins(self.ev, calls, reach, Rows(self.table, batches))
        self._shared: dict[int, bool] = {}

    def found(self) -> Iterator[Unshared]:
        """Each such data set, once."""
        once: dict[Site, Unshared] = {}
        for ref in self.ev.project.functions():
            if not self.multi.has_several(ref.path):
                continue
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                each = self._divided(frame, number, call) or self._passed_on(frame, call)
                if each is not None and each.site not in once and not self._shares_out(ref.path):
                    once[each.site] = each
        yield from once.values()

    def _divided(self, frame: Frame, number: int, call: s.Call) -> Unshared | None:
        """The data that a call makes batches of, whose size was divided by the number of processes."""
        callee = certain(self.ev.value(frame, call.function))
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        method = frame.code.operations[call.function]
        if known is not None and known.batches:
            size = passed(call, known.batches, known.positional)
        elif isinstance(method, s.Attribute) and method.name in BATCHERS and not isinstance(callee, FunctionValue):
            size = passed(call, "batch_size", ("batch_size",))
        else:
            return None
        found = self._portion.of(frame, size) if size is not None else None
        return Unshared(self._source(frame, number), found, divided=True) if found is not None else None

    def _passed_on(self, frame: Frame, call: s.Call) -> Unshared | None:
        """The data whose batches a call takes as this process's part."""
        callee = certain(self.ev.value(frame, call.function))
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        part = passed(call, known.local, known.positional) if known is not None and known.local else None
        layout = passed(call, known.laid_out or "", known.positional) if known is not None else None
        layouts = self.ev.value(frame, layout) if layout is not None else ()
        if part is None or any(copied(self.ev, each) for each in layouts):
            return None
        found = self._loaded.of(frame, part)
        if found is None:
            return None
        batched = found.chain()[1].site
        return Unshared(self._source(self.ev.free_frame(batched.ref), batched.number), found, divided=False)

    def _source(self, frame: Frame, number: int) -> Site:
        """The call that makes a data set of which methods make others, and at last its batches."""
        operations = frame.code.operations
        for _ in LINKS:
            call = operations[number]
            method = operations[call.function] if isinstance(call, s.Call) else None
            if not isinstance(method, s.Attribute):
                break
            base = frame.code.root_of(method.base)
            load, made = operations[base], base
            if isinstance(load, s.Load) and frame.code.function.binds(load.name):
                store = operations[min(self.ev.reaching(frame, base, load.name), default=base)]
                made = frame.code.root_of(store.value) if isinstance(store, s.Store) else base
            if not isinstance(operations[made], s.Call) or made >= number:
                break
            number = made
        return Site(frame.ref, number)

    # -- whether a program shares data out

    def _shares_out(self, path: Path) -> bool:
        component = self.ev.project.component
        at = component[path]
        if at not in self._shared:
            same = [other for other in self.ev.project.modules if component[other] == at]
            named = any(not self.table.dealers.isdisjoint(self.ev.project.modules[each].words) for each in same)
            self._shared[at] = named or any(
                self._chooses(self.ev.free_frame(ref)) for ref in self.ev.project.functions() if ref.path in same
            )
        return self._shared[at]

    def _chooses(self, frame: Frame) -> bool:
        """Whether a function uses the number of the process in a way that may choose data."""
        return any(self._may_choose(frame, operation) for operation in frame.code.operations)

    def _may_choose(self, frame: Frame, operation: s.Operation) -> bool:
        operations = frame.code.operations
        if isinstance(operation, s.Compare):
            if any(isinstance(operations[frame.code.root_of(each)], s.Const) for each in operation.operands):
                return False
            return self._tells(frame, operation.operands)
        if isinstance(operation, s.Subscript):
            return self._tells(frame, [operation.index])
        if isinstance(operation, s.Slice):
            return self._tells(frame, [e for e in (operation.lower, operation.upper, operation.step) if e is not None])
        if not isinstance(operation, s.Call) or not operation.arguments:
            return False
        if any(argument.keyword in self.table.dealers for argument in operation.arguments):
            return True
        method = operations[operation.function]
        callee = certain(self.ev.value(frame, operation.function))
        if isinstance(callee, (FunctionValue, ClassValue, Instance)):
            return False  # what it does with it is asked there
        if isinstance(callee, External) and callee.name.startswith(self.table.tellers):
            return False
        if isinstance(method, s.Attribute) and method.name in self.table.told:
            return False
        return self._tells(frame, [argument.value for argument in operation.arguments])

    def _tells(self, frame: Frame, numbers: list[int] | tuple[int, ...]) -> bool:
        return self._number.any_of(frame, numbers) is not None


def _of_any_size(frame: Frame, number: int) -> Reason:
    return Reason(Site(frame.ref, number), "this is how many examples a batch has", "loaded")
