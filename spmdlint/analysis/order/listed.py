"""Where the order of a listing matters: shares by process index, parallel calls per entry, numbers given to names."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.order.filling import order_of_iteration
from spmdlint.analysis.order.listings import SHUFFLED
from spmdlint.analysis.variance.evened import SHARDERS
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.strides import stride_of
from spmdlint.analysis.variance.windows import cut_by
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s

_TAKES: tuple[type[s.Operation], ...] = (s.Subscript, s.Next, s.Call)
_OWN = ("identity", "data")
_DRAWN = ("clock", "entropy")
_COLLECTED = (s.Collected,)
_PUTS = (s.StoreSubscript,)

_SKIPPERS = frozenset(("skip",))
"""Methods of data sets that skip the parts of earlier processes."""


class ListingShare(Struct, frozen=True):
    """A process's share of a listing: a slice whose bounds come from the process index.

    ``mixed``: a share of what each process has shuffled in its own way.
    """

    site: Site
    reason: Reason
    share: Reason
    mixed: bool = False


class ListingLoop(Struct, frozen=True):
    """A loop over a listing that makes a parallel call per entry."""

    site: Site
    reason: Reason
    call: ParallelCall


class ListingNumbers(Struct, frozen=True):
    """Numbers that names get by their position in a listing or a set: where they are given, and where they are kept."""

    site: Site
    reason: Reason
    kept: Site


class Listings:
    """Finds where the order of a listing matters."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        effects: Effects,
        listing: Origins,
        sets: Origins,
        variance: Origins,
        multi: MultiProcess,
        *,
        preview: bool,
    ) -> None:
        self.multi = multi
        self.preview = preview
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.listing = listing
        self.sets = sets
        self.variance = variance

    def numbers(self) -> Iterator[ListingNumbers]:
        """Numbers, function by function, in code for several processes."""
        for ref in self.ev.project.functions():
            if self.preview or self.multi.runs_several(ref.path):
                frame = self.ev.free_frame(ref)
                yield from self._numbers(frame, self.ev.live_blocks(frame))

    def found(self) -> Iterator[ListingShare | ListingLoop]:
        """Shares and loops, function by function."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            for block, number, operation in frame.code.each(_TAKES):
                if block not in live:
                    continue
                if isinstance(operation, s.Subscript):
                    yield from self._share(frame, number, operation)
                elif isinstance(operation, s.Call):
                    yield from self._shard(frame, number, operation)
                elif isinstance(operation, s.Next) and frame.code.function.blocks[block].test == number:
                    yield from self._dealt(frame, block, number, operation)
                    if ref in self.reach.host:
                        yield from self._loop(frame, block, operation)

    def _share(self, frame: Frame, number: int, operation: s.Subscript) -> Iterator[ListingShare]:
        index = cut_by(self.ev, frame, operation.index)
        if index is not None:
            ends = [end for end in (index.lower, index.upper, index.step) if end is not None]
        elif isinstance(frame.code.operations[operation.index], s.Const):
            return
        else:
            ends = [operation.index]
        if isinstance(frame.code.operations[operation.index], s.Slice):
            yield from self._mixed(frame, number, operation.base, ends)
        reason = self.listing.why(frame, operation.base)
        if reason is None:
            return
        share = self.variance.any_of(frame, ends)
        # Selecting one index after another from a share of all indices is a share as well.
        if share is not None and share.kind in (_OWN if index is None else _OWN[:1]):
            yield ListingShare(Site(frame.ref, number), reason, share)

    def _mixed(self, frame: Frame, number: int, base: int, ends: list[int]) -> Iterator[ListingShare]:
        """A share of data that each process has shuffled with a seed of its own: the shares overlap."""
        share = self.variance.any_of(frame, ends)
        if share is None or share.kind not in _OWN or self.listing.why(frame, base) is not None:
            return
        reason = self.variance.why(frame, base)
        if reason is not None and any(each.kind in _DRAWN or each.passes("draw") for each in reason.each()):
            yield ListingShare(Site(frame.ref, number), reason, share, mixed=True)

    def _shard(self, frame: Frame, number: int, operation: s.Call) -> Iterator[ListingShare]:
        """Shares by ``files.shard(process_count(), process_index())`` or ``rows.skip(start).take(size)``."""
        if self.ev.may_do(frame, operation, "islice") and len(operation.arguments) > 1:
            first, *ends = (argument.value for argument in operation.arguments)
            yield from self._mixed(frame, number, first, ends)
            reason, share = self.listing.why(frame, first), self.variance.any_of(frame, ends)
            if reason is not None and share is not None and share.kind == "identity":
                yield ListingShare(Site(frame.ref, number), reason, share)
        method = self.ev.function(frame).operations[operation.function]
        if not isinstance(method, s.Attribute) or method.name not in SHARDERS | _SKIPPERS:
            return
        given = [argument.value for argument in operation.arguments]
        if method.name in SHARDERS:
            yield from self._mixed(frame, number, method.base, given)
        reason = self.listing.why(frame, method.base)
        share = self.variance.any_of(frame, given) if reason is not None else None
        if reason is not None and share is not None and share.kind == "identity":
            yield ListingShare(Site(frame.ref, number), reason, share)

    def _dealt(self, frame: Frame, header: int, number: int, loop: s.Next) -> Iterator[ListingShare]:
        """Shares by ``if i % n == rank`` in a loop over ``enumerate(files)``."""
        call = frame.code.operations[frame.code.root_of(loop.iterable)]
        if not isinstance(call, s.Call) or not self.ev.may_do(frame, call, "enumerate") or not call.arguments:
            return
        reason = self.listing.why(frame, call.arguments[0].value)
        if reason is None:
            return
        for block in sorted(self.ev.flow(frame.ref).loop_body(header)):
            test = frame.code.function.blocks[block].test
            found = stride_of(self.variance, frame, test) if test is not None else None
            counted = frame.code.operations[frame.code.root_of(found[1])] if found is not None else None
            if found is not None and isinstance(counted, s.Item) and (counted.value, counted.index) == (number, 0):
                yield ListingShare(Site(frame.ref, call.arguments[0].value), reason, found[0])
                return

    def _numbers(self, frame: Frame, live: frozenset[int]) -> Iterator[ListingNumbers]:
        """Numbers in ``{name: i for i, name in enumerate(listing)}``, or by ``ids[name] = len(ids)`` in a loop."""
        for block, number, made in frame.code.each(_COLLECTED):
            if made.kind == "dict" and block in live:
                for counted in self._counted(frame, made):
                    yield from self._numbered(frame, counted, number)
        for block, number, put in frame.code.each(_PUTS):
            value = frame.code.operations[frame.code.root_of(put.value)]
            named = not isinstance(frame.code.operations[put.index], s.Const)
            if block in live and named and isinstance(value, s.Call) and self.ev.may_do(frame, value, "length"):
                for header, body in self.ev.flow(frame.ref).loops.items():
                    test = frame.code.function.blocks[header].test
                    loop = frame.code.operations[test] if test is not None else None
                    if block in body and isinstance(loop, s.Next) and self._grows(frame, value, put, body):
                        yield from self._numbered(frame, loop.iterable, number)

    def _grows(self, frame: Frame, count: s.Call, put: s.StoreSubscript, body: frozenset[int]) -> bool:
        """Whether the counted object is the dictionary itself, or a list that the same loop fills."""
        operations, block_of = frame.code.operations, frame.code.function.block_of
        counted = operations[count.arguments[0].value] if count.arguments else None
        kept = operations[put.base]
        if isinstance(counted, s.Attribute) and isinstance(kept, s.Attribute):
            return counted.name == kept.name
        if not isinstance(counted, s.Load):
            return False
        if isinstance(kept, s.Load) and kept.name == counted.name:
            return True
        return any(block_of[filled] in body for filled in frame.code.filling.get(counted.name, ()))

    def _counted(self, frame: Frame, made: s.Collected) -> Iterator[int]:
        """The iterable of ``enumerate`` in a comprehension, if the dictionary keeps its numbers."""
        kept = [frame.code.operations[frame.code.root_of(n)] for n in (made.key, made.element) if n is not None]
        for loop in made.loops:
            step = frame.code.operations[loop]
            call = frame.code.operations[frame.code.root_of(step.iterable)] if isinstance(step, s.Next) else None
            numbers = any(isinstance(o, s.Item) and o.value == loop and o.index == 0 for o in kept)
            if isinstance(call, s.Call) and numbers and self.ev.may_do(frame, call, "enumerate"):
                yield from (argument.value for argument in call.arguments[:1])

    def _numbered(self, frame: Frame, listed: int, kept: int) -> Iterator[ListingNumbers]:
        for order in (self.listing, self.sets):
            reason = order.why(frame, listed)
            if reason is not None:
                yield ListingNumbers(Site(frame.ref, listed), reason, Site(frame.ref, kept))

    def _loop(self, frame: Frame, header: int, test: s.Next) -> Iterator[ListingLoop]:
        flow = self.ev.flow(frame.ref)
        body = flow.loop_body(header) & self.ev.live_blocks(frame)
        calls = self.effects.of_blocks(frame, [block for block in flow.order(header) if block in body])
        several = self.multi.runs_several(frame.ref.path)
        strong = [call for call in calls if call.strength == "strong" or (call.carried and several)]
        if not self.preview and not self.multi.says(frame.ref.path):
            # Scripts that convert checkpoints run as a single process.
            strong = [call for call in strong if not call.checkpoint]
        weak = calls if several or self.preview else ()
        if strong or weak:
            reason = order_of_iteration(self.listing, frame, test.iterable)
            if reason is None or reason.kind == SHUFFLED:
                return  # rows that are shuffled on purpose: each process has its own
            all_alike = self.multi.needs(frame.ref.path) and self.variance.why(frame, test.iterable) is None
            if reason.kind == "completion" or self.preview or all_alike:  # its own share may be its own work
                strong = strong or list(weak)
            if strong and (self.preview or self.multi.surely_runs_several(frame.ref.path)):
                yield ListingLoop(Site(frame.ref, test.iterable), reason, strong[0])
