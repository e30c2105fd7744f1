"""Where the order of a set has an effect: in loops that make parallel calls, and in code that JAX traces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.effects import Effects, ParallelCall, carries
from spmdlint.analysis.callgraph.entries import Entries
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.elements import written_out
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure
from spmdlint.analysis.evaluation.numeric import compared_with_numbers
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.order.filling import order_of_iteration
from spmdlint.analysis.order.stacked import listed_dimensions
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.files import names
from spmdlint.knowledge.orders import dimensions
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import operands

_READS: tuple[type[s.Operation], ...] = (s.Call, s.Subscript)

Sink = Literal["parallel call", "traced program", "axis names", "mesh", "random keys", "share", "dimensions"]

MAX_ENTERED = 8
"""The most calls of a function with functions that it may call which are examined."""
_SPLITTERS = ("jax.random.split",)
_ARITHMETIC = frozenset(("+", "-", "*", "/", "@", "**"))
_TRACED = names("traced_modules")


class SetLoop(Struct, frozen=True):
    """An iteration in set order, and what its order reaches; ``call`` is set if that is a parallel call."""

    site: Site
    iterable: Site
    reason: Reason
    sink: Sink
    what: str
    call: ParallelCall | None = None


class SetLoops:
    """Finds such iterations, function by function."""

    def __init__(
        self,
        evaluator: Evaluator,
        calls: Calls,
        reach: Reach,
        effects: Effects,
        order: Origins,
        held: Origins,
        variance: Origins,
        multi: MultiProcess,
        entries: Entries,
        *,
        preview: bool,
    ) -> None:
        self.ev = evaluator
        self.entries = entries
        self.multi = multi
        self.preview = preview
        self.variance = variance
        self.reach = reach
        self.effects = effects
        self.order = order
        self.held = held

    def loops(self) -> Iterator[SetLoop]:
        """Every such iteration of the program; for iterations of one function over the same set, only the first."""
        told: set[tuple[FunctionRef, Site]] = set()
        for found in self._all():
            source = (found.site.ref, found.reason.source.site)
            if source not in told:
                told.add(source)
                yield found

    def _all(self) -> Iterator[SetLoop]:
        for listed in listed_dimensions(self.ev, self.reach, self.held, dimensions()):
            yield SetLoop(listed.call, listed.argument, listed.reason, "dimensions", listed.name)
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            for entered in (frame, *islice(self.entries.frames(ref), MAX_ENTERED)):
                yield from self._loops_of(entered)
            for block, position, call in frame.code.each(_READS):
                if block not in live:
                    continue
                if isinstance(call, s.Call):
                    found_here = self._axis_names(frame, position, call)
                    yield from (each for each in found_here if not expects_failure(self.ev, frame, position))
                elif isinstance(call, s.Subscript):
                    yield from self._share(frame, position, call)

    def _loops_of(self, frame: Frame) -> Iterator[SetLoop]:
        function = self.ev.function(frame)
        for number in sorted(self.ev.live_blocks(frame)):
            test = function.blocks[number].test
            operation = function.operations[test] if test is not None else None
            if isinstance(operation, s.Next) and test is not None:
                yield from self._loop(frame, frame.ref, number, test, operation)

    def _share(self, frame: Frame, number: int, operation: s.Subscript) -> Iterator[SetLoop]:
        """One process's share of what is listed in set order."""
        if isinstance(frame.code.operations[operation.index], s.Const):
            return
        # Fewer values are in set order than differ between processes, so this is asked first.
        reason = self.order.why(frame, operation.base)
        made = [self.ev.code(at.site.ref).operations[at.site.number] for at in reason.chain()] if reason else []
        # A dictionary gives the same for a key in whatever order it was filled.
        if reason is not None and not any(isinstance(each, s.Collected) and each.kind == "dict" for each in made):
            share = self.variance.why(frame, operation.index)
            if share is not None and share.kind == "data":
                yield SetLoop(Site(frame.ref, number), Site(frame.ref, operation.base), reason, "share", "")

    def _loop(self, frame: Frame, ref: FunctionRef, header: int, test: int, operation: s.Next) -> Iterator[SetLoop]:
        # Few loops do anything that depends on an order, and that is quicker to find out than the order.
        reached = self._reached(frame, ref, header, test, operation)
        reason = order_of_iteration(self.order, frame, operation.iterable) if reached is not None else None
        if reached is not None and reason is not None and not compared_with_numbers(self.ev, frame, test):
            yield SetLoop(Site(ref, test), Site(ref, operation.iterable), reason, *reached)

    def _reached(
        self, frame: Frame, ref: FunctionRef, header: int, test: int, operation: s.Next
    ) -> tuple[Sink, str, ParallelCall | None] | None:
        """What the order of a loop reaches; None if it reaches nothing."""
        body = sorted(self.ev.flow(ref).loop_body(header) & self.ev.live_blocks(frame))
        if ref in self.reach.host:
            calls = self.effects.of_blocks(frame, body)
            if not self.preview and not self.multi.says(ref.path):
                calls = tuple(c for c in calls if c.strength == "strong" and not c.checkpoint)
            if calls:
                return "parallel call", calls[0].name, calls[0]
            if self._pairs_keys(frame, operation.iterable):
                return "random keys", "zip", None
        name = self._operation(frame, body, _SPLITTERS)
        if name is not None and self._carries_a_key(frame, body):
            return "random keys", name, None
        if ref in self.reach.traced:
            name = self._operation(frame, body, _TRACED, of_element=test) or self._arithmetic(frame, body)
            if name is not None:
                return "traced program", name, None
        return None

    def _pairs_keys(self, frame: Frame, iterable: int) -> bool:
        """Whether an iterable is ``zip(jax.random.split(key, n), names)``."""
        function = self.ev.function(frame)
        zipped = function.operations[iterable]
        if not isinstance(zipped, s.Call) or not self.ev.may_do(frame, zipped, "zip"):
            return False
        for argument in zipped.arguments:
            operation = function.operations[argument.value]
            made = [argument.value]
            if isinstance(operation, s.Load):
                stores = self.ev.reaching(frame, argument.value, operation.name)
                made = [store.value for n in stores if isinstance(store := function.operations[n], s.Store)]
            calls = [call for n in made if isinstance(call := function.operations[n], s.Call)]
            if any(self.ev.may_call(frame, call, *_SPLITTERS) for call in calls):
                return True
        return False

    def _carries_a_key(self, frame: Frame, blocks: list[int]) -> bool:
        """Whether a name is both read and written by the splitter: ``key, sub = split(key)`` in every iteration."""
        function = self.ev.function(frame)
        for block in blocks:
            for number in function.blocks[block].operations:
                operation = function.operations[number]
                if isinstance(operation, s.Call) and carries(frame.code, number, operation):
                    callees = self.ev.value(frame, operation.function)
                    if any(isinstance(c, External) and c.name.startswith(_SPLITTERS) for c in callees):
                        return True
        return False

    def _arithmetic(self, frame: Frame, blocks: list[int]) -> str | None:
        """Arithmetic whose results are each stored under a key, as on arrays."""
        function = self.ev.function(frame)
        for block in blocks:
            for number in function.blocks[block].operations:
                operation = function.operations[number]
                if isinstance(operation, s.StoreSubscript):
                    kept = function.operations[operation.value]
                    if not isinstance(kept, s.Binary) or kept.operator not in _ARITHMETIC:
                        continue
                    added = (function.operations[side] for side in (kept.left, kept.right))
                    if not any(isinstance(each, s.Const) for each in added):  # as in numbers[name] += 1
                        return f"an operation ({kept.operator})"
        return None

    def _operation(
        self, frame: Frame, blocks: list[int], prefixes: tuple[str, ...], of_element: int | None = None
    ) -> str | None:
        """A JAX operation in some blocks; with ``of_element``, one that uses the element of their loop.

        An operation that is the same in every iteration makes the same program in any order.
        """
        function = self.ev.function(frame)
        going = _going_into(function, blocks, of_element) if of_element is not None else None
        for block in blocks:
            for number in function.blocks[block].operations:
                operation = function.operations[number]
                if isinstance(operation, s.Call) and (going is None or number in going):
                    for value in ordered(self.ev.value(frame, operation.function)):
                        if isinstance(value, External) and value.name.startswith(prefixes):
                            return value.name
        return None

    def _axis_names(self, frame: Frame, number: int, operation: s.Call) -> Iterator[SetLoop]:
        """A collective over axes listed in set order: each process's program names them in a different order.

        Also a mesh of devices in set order, and the axes of a spec.
        """
        for callee in ordered(self.ev.value(frame, operation.function)):
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.kind == "mesh" and "devices" in known.positional:
                devices = passed(operation, "devices", known.positional)
                reason = self.held.why(frame, devices) if devices is not None else None
                if reason is not None and devices is not None:
                    yield SetLoop(Site(frame.ref, number), Site(frame.ref, devices), reason, "mesh", known.name)
            if known is not None and known.kind == "spec":
                yield from self._spec(frame, number, operation)
            if known is None or known.kind != "collective" or known.axes is None:
                continue
            axes = passed(operation, known.axes, known.positional)
            reason = self.order.why(frame, axes) if axes is not None else None
            if reason is not None and axes is not None:
                site = Site(frame.ref, number)
                yield SetLoop(site, Site(frame.ref, axes), reason, "axis names", known.name)

    def _spec(self, frame: Frame, number: int, operation: s.Call) -> Iterator[SetLoop]:
        """A spec that splits one dimension along axes in set order: each process then has other rows on a device."""
        for argument in operation.arguments:
            if argument.keyword is not None:
                continue  # these axes are reduced over, or not, in no particular order
            if argument.star:
                yield from self._dimensions(frame, number, argument.value)
            made = frame.code.operations[frame.code.root_of(argument.value)]
            listed = isinstance(made, s.Call) or (isinstance(made, s.Collected) and made.kind != "set")
            if argument.star and (len(operation.arguments) > 1 or not listed):
                continue  # only some of the dimensions: often at most one, depending on the rank of the array
            reason = self.order.why(frame, argument.value)
            if isinstance(made, s.Collected) and reason is not None and reason.source.site.ref.path != frame.ref.path:
                continue  # names of dimensions passed to a library, from anywhere
            if reason is not None:
                site = Site(frame.ref, argument.value)
                yield SetLoop(Site(frame.ref, number), site, reason, "axis names", "a PartitionSpec")
                return

    def _dimensions(self, frame: Frame, number: int, dimensions: int) -> Iterator[SetLoop]:
        """One of the dimensions in a tuple: ``P(*(("data",) + rest(rules)))``."""
        operation = frame.code.operations[frame.code.root_of(dimensions)]
        if isinstance(operation, s.Binary) and operation.operator == "+":
            for side in (operation.left, operation.right):
                yield from self._dimensions(frame, number, side)
            return
        for where, element in written_out(self.ev, frame, dimensions):
            reason = self.order.why(where, element)
            if reason is not None:
                site = Site(where.ref, element)
                yield SetLoop(Site(frame.ref, number), site, reason, "axis names", "a PartitionSpec")


def _going_into(function: s.Function, blocks: list[int], element: int) -> set[int]:
    """The operations in a loop's body that use its element, or that a condition on it guards."""
    found, names = {element}, set[str]()
    inside = [number for block in blocks for number in function.blocks[block].operations]
    if any(function.blocks[block].test not in (None, element) for block in blocks):
        return {*inside}
    before = -1
    while before != len(found):
        before = len(found)
        for number in inside:
            operation = function.operations[number]
            if isinstance(operation, s.Call):
                given = (operation.function, *(argument.value for argument in operation.arguments))
            else:
                given = operands(operation)
            if not found.isdisjoint(given) or (isinstance(operation, s.Load) and operation.name in names):
                found.add(number)
                if isinstance(operation, s.Store):
                    names.add(operation.name)
    return found
