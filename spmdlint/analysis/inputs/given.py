"""Arguments of parallel calls that must agree: arrays whose shape differs, and static arguments that differ.

A jitted function is compiled anew for every shape and every static argument, so processes that pass different ones run
different programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.effects import BROADCAST, Effects, ParallelCall, compiled_in
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.callgraph.statics import static_arguments
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
)
from spmdlint.analysis.variance.control import Branch, Control
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.lastbatch import BY_LENGTH, REMAINDER
from spmdlint.analysis.variance.origins import Reason
from spmdlint.analysis.variance.reason import first, of_kind
from spmdlint.analysis.variance.selected import SELECTED
from spmdlint.analysis.variance.sources import is_of_others, told_by_others
from spmdlint.analysis.variance.texts import LONGEST
from spmdlint.analysis.variance.writtenshapes import in_words, several_shapes, written_shapes
from spmdlint.analysis.worlds.search import Worlds
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s

_SHAPED = (".zeros", ".ones", ".full", ".empty")
# Sources that may or may not differ: one would have to know the data.
_UNSURE = ("files", "named", "thread")
_Made: TypeAlias = tuple[s.Call, ParallelCall]


class Given(Struct, frozen=True):
    """An argument of a parallel call that differs between processes; ``static`` is the name of a static parameter.

    ``cause`` is the step of the reason that has to be fixed, if that is not its source. ``structure``: the tree
    structure differs, not the shape of an array. ``shapes``: those that it may have, in words, if they are written out.
    ``other`` is the same call on the other processes, if that is a different operation.
    """

    site: Site
    call: ParallelCall
    reason: Reason
    static: str | None = None
    cause: Reason | None = None
    structure: bool = False
    shapes: str | None = None
    other: Site | None = None


class Inputs:
    """Checks every parallel call of the program."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        effects: Effects,
        facets: Facets,
        multi: MultiProcess,
        worlds: Worlds,
        *,
        preview: bool,
    ) -> None:
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.facets = facets
        self.multi = multi
        self.preview = preview
        self.control = evaluator.once(Control)
        self.worlds = worlds

    def shapes(self) -> Iterator[Given]:
        """Arguments whose shape differs between processes."""
        for frame, operation, call in self._calls:
            if (call.strength == "weak" and not self._counts(frame, call)) or self._takes_any(call):
                continue
            # An argument may count on one process only, so that all others may pass None for it.
            known = self._known(call)
            rooted = passed(operation, known.rooted, known.positional) if known is not None and known.rooted else None
            for place, argument in enumerate(operation.arguments):
                found = self._shape(frame, operation, argument.value, call) if argument.value != rooted else None
                found = found or self._by_length(frame, argument.value, call)
                if found is not None and not self._is_even(frame, found, place):
                    yield replace(found, shapes=in_words(written_shapes(self.ev, frame, argument.value)))
                    break
            else:
                ragged = self._in_worlds(frame, operation, call, rooted)
                if ragged is not None:
                    yield ragged
        yield from self._in_two_calls()

    def _is_even(self, frame: Frame, found: Given, argument: int) -> bool:
        """Whether an argument has as many rows everywhere after all: what is shared out divides, or is made to."""
        source = found.reason.source
        shared = source.kind in ("identity", "group") and found.reason.cause is not source and not found.structure
        return (
            shared and source.site.ref == frame.ref and self.worlds.rows_alike(frame, found.call.site.number, argument)
        )

    def _in_worlds(self, frame: Frame, operation: s.Call, call: ParallelCall, rooted: int | None) -> Given | None:
        """An argument that does not have as many rows on each process of a small job."""
        asked = self.worlds.asked_within(frame) if operation.arguments else None
        reason = self.facets.content.why(self.ev.free_frame(asked.ref), asked.number) if asked is not None else None
        world = self.worlds.rows_differ(frame, call.site.number) if reason is not None else None
        if asked is None or world is None or world.argument is None or not world.lengths:
            return None
        value = operation.arguments[world.argument].value
        if value == rooted:
            return None
        why = Reason(asked, world.told(), "data", reason)
        return Given(Site(frame.ref, value), call, why, cause=why)

    def _in_two_calls(self) -> Iterator[Given]:
        """Arguments of one call that the two arms of a branch make with different shapes."""
        in_functions: dict[Frame, list[tuple[s.Call, ParallelCall]]] = {}
        for frame, operation, call in self._calls:
            if call.strength == "strong" and operation.arguments and not self._takes_any(call):
                in_functions.setdefault(frame, []).append((operation, call))
        for frame, calls in in_functions.items():
            for branch in self.control.branches(frame.ref) if len(calls) > 1 else ():
                for one, other in self._paired(frame, branch, calls):
                    yield from self._of_pair(frame, branch.test, one, other)

    def _paired(self, frame: Frame, branch: Branch, calls: Sequence[_Made]) -> Iterator[tuple[_Made, _Made]]:
        """The calls in the two arms of a branch, if either makes only one, here or through other functions."""
        block_of = frame.code.function.block_of
        arms = [[made for made in calls if block_of[made[1].site.number] in arm] for arm in (branch.yes, branch.no)]
        if not all(len(arm) == 1 for arm in arms) or not arms[0][0][1].matches(arms[1][0][1]):
            return
        if all(self._count(frame, arm) == 1 for arm in (branch.yes, branch.no)):
            yield arms[0][0], arms[1][0]

    def _count(self, frame: Frame, blocks: frozenset[int]) -> int:
        """How many parallel calls some blocks make."""
        running = frame.code.calls_in(sorted(blocks))
        return sum(1 for number, call in running for _ in self.effects.of_call(frame, number, call))

    def _of_pair(self, frame: Frame, test: int, one: _Made, other: _Made) -> Iterator[Given]:
        given = [made[0].arguments[0].value for made in (one, other)]
        shapes = several_shapes(self.ev, frame, given)
        found = self.facets.content.why(frame, test) if shapes is not None else None
        reason = first(found, partial(self._sure, frame, other[1]))
        if reason is not None:
            yield Given(Site(frame.ref, given[1]), other[1], reason, shapes=shapes, other=one[1].site)

    def _shape(self, frame: Frame, operation: s.Call, value: int, call: ParallelCall) -> Given | None:
        """Why the shape or the structure of an argument differs between processes."""
        for facet in (self.facets.structure, self.facets.shape):
            found = facet.why(frame, value)
            for reason in found.each() if found is not None else ():
                if reason.kind == SELECTED and not self._is_own(frame, operation, value):
                    continue  # it is not known whose data it is selected from
                # What is broadcast because processes see different files must not determine a shape; what is gathered
                # may well be made from the same number of files everywhere.
                here = call.same == BROADCAST or reason.source.site.ref.path == frame.ref.path
                agreed = reason.kind == "files" and here and self.effects.agrees(frame, operation)
                if agreed or (reason.kind != "files" and self._sure(frame, call, reason)):
                    return Given(Site(frame.ref, value), call, reason, structure=facet is self.facets.structure)
        return None

    def _by_length(self, frame: Frame, value: int, call: ParallelCall) -> Given | None:
        """Why each batch has a different shape on each process: it is as long as this process's own examples."""
        reason = self.facets.last_batch.why(frame, value)
        made = _step(reason, BY_LENGTH)
        if reason is None or made is None or made.source.kind == "named":
            return None
        return Given(Site(frame.ref, value), call, reason, cause=made)

    def _is_own(self, frame: Frame, operation: s.Call, value: int) -> bool:
        """Whether an argument is one process's part: a call gathers it as such, or it is sliced by process index."""
        if self.effects.agrees(frame, operation):
            return True
        return of_kind(self.facets.content.why(frame, value), "data") is not None

    def short_batches(self) -> Iterator[Given]:
        """Arguments with too few rows when the data ends, by a different number on each process."""
        for frame, operation, call in self._calls:
            if call.strength == "weak" and not self._counts(frame, call):
                continue
            for argument in operation.arguments:
                reason = self.facets.last_batch.why(frame, argument.value)
                kept = _step(reason, REMAINDER)
                if reason is not None and kept is not None:
                    yield Given(Site(frame.ref, argument.value), call, reason, cause=kept)
                    break

    def statics(self) -> Iterator[Given]:
        """Static arguments that differ between processes."""
        for frame, operation, call in self._calls:
            if call.strength == "weak" and not (self.preview or self.multi.runs_several(frame.ref.path)):
                continue
            static = [(frame, parameter, value) for parameter, value in self._static(frame, operation)]
            for where, parameter, value in (*static, *self._bound(frame, operation)):
                reason = first(self.facets.content.why(where, value), partial(self._sure, frame, call))
                if reason is not None:
                    yield Given(Site(where.ref, value), call, reason, parameter)

    @cached_property
    def _calls(self) -> list[tuple[Frame, s.Call, ParallelCall]]:
        return list(self._find_calls())

    def _find_calls(self) -> Iterator[tuple[Frame, s.Call, ParallelCall]]:
        for ref in self.ev.project.functions():
            if ref not in self.reach.host:
                continue
            frame = self.ev.free_frame(ref)
            for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                if not operation.decorator:
                    for call in self.effects.of_call(frame, number, operation):
                        if len(call.path) == 1:
                            yield frame, operation, call

    def _counts(self, frame: Frame, call: ParallelCall) -> bool:
        return call.carried and (self.preview or self.multi.runs_several(frame.ref.path))

    def _takes_any(self, call: ParallelCall) -> bool:
        """Whether processes may give a call arrays of different shapes: it sends objects, or is told the sizes."""
        known = self._known(call)
        return known is not None and known.any_shape

    def _known(self, call: ParallelCall) -> Known | None:
        return self.ev.knowledge.get(call.same) if isinstance(call.same, str) else None

    def _sure(self, frame: Frame, call: ParallelCall, reason: Reason) -> bool:
        if told_by_others(self.ev, self.multi, frame.ref.path, reason) and not is_of_others(call):
            return False
        if reason.kind == "ragged":
            paths = (frame.ref.path, reason.source.site.ref.path)
            own = self.preview or self.facets.sharing.has_own(frame.ref.path)
            return own and self.multi.counts_lengths(*paths, preview=self.preview)
        if not self.preview and not self.multi.runs_several(frame.ref.path):
            # A single-process program makes a row for each of its processors, and pads its texts as it likes.
            guessed = reason.kind == LONGEST and reason.source.kind == "named"
            if reason.kind == "host" or guessed:
                return False
        return reason.kind not in _UNSURE or self.preview

    def _static(self, frame: Frame, operation: s.Call) -> Iterator[tuple[str, int]]:
        """The static parameters of a jit or map, and the values that a call passes for them."""
        callee = self._compiled(frame, operation)
        if not isinstance(callee, Applied) or any(argument.star for argument in operation.arguments):
            return
        for name, value in static_arguments(self.ev, callee, operation, self._formals(callee)):
            if name is not None:
                yield name, value

    def _compiled(self, frame: Frame, operation: s.Call) -> Value | None:
        """What a call runs: a map or jit, perhaps inside of a derivative."""
        callee = self.ev.callee(frame, operation)
        return callee if callee is None else compiled_in(self.effects.calls, callee) or callee

    def _bound(self, frame: Frame, operation: s.Call) -> Iterator[tuple[Frame, str, int]]:
        """What a `partial` under a jit or map was made with: part of the program, like a static argument."""
        callee = self._compiled(frame, operation)
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, Applied) else None
        if known is None or not isinstance(callee, Applied):
            return
        for function in self.effects.calls.functions_in(known, callee.arguments):
            inner = self.ev.knowledge.get(function.name) if isinstance(function, Applied) else None
            if not isinstance(function, Applied) or inner is None or inner.kind != "currying":
                continue
            where = self.ev.free_frame(function.site.ref)
            made = where.code.operations[function.site.number]
            names = self._all_formals(function)
            for position, argument in enumerate(made.arguments[1:] if isinstance(made, s.Call) else ()):
                name = argument.keyword or (names[position] if position < len(names) else None)
                if name is not None and not argument.star:
                    yield where, name, argument.value

    def _all_formals(self, partial: Applied) -> list[str]:
        """The parameters of the function that a `partial` wraps."""
        function = certain(partial.arguments.positional[0]) if partial.arguments.positional else None
        if isinstance(function, FunctionValue):
            return [formal.name for formal in self.ev.project.function(function.ref).formals]
        library = isinstance(function, External) and function.name.startswith("jax.numpy.")
        return ["shape"] if library and isinstance(function, External) and function.name.endswith(_SHAPED) else []

    def _formals(self, callee: Applied) -> list[str]:
        known = self.ev.knowledge.get(callee.name)
        for function in self.effects.calls.functions_in(known, callee.arguments) if known is not None else ():
            if isinstance(function, FunctionValue):
                names = [f.name for f in self.ev.project.function(function.ref).formals]
                return names[1:] if callee.receiver is not None or function.receiver is not None else names
            if isinstance(function, Applied):
                inner = self.ev.knowledge.get(function.name)
                names = self._formals(function)
                bound = len(function.arguments.positional) - 1
                return names[bound:] if inner is not None and inner.kind == "currying" else names
        return []


def _step(reason: Reason | None, kind: str) -> Reason | None:
    """The first step of a kind that led to something."""
    return next((step for step in reason.chain() if step.kind == kind), None) if reason is not None else None
