"""Data that every process reads whole, although the batches made of it are meant for one process each.

Batches are meant for one process if their size was divided by the number of processes, or if they are passed on as a
process's own part of a global array. They are the same on all processes, or are drawn from the same examples, if
nothing in the program tells the processes apart where data is chosen: wherever a process asks which one it is, the
answer is compared with a constant, told, or makes a random key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.values import Applied, Frame, Site
from spmdlint.analysis.inputs.quantities import Portion, Quantities
from spmdlint.analysis.inputs.rows import Batches, Rows, batch_size, own_part
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.sharing import Sharing
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s


class Unshared(Struct, frozen=True):
    """A data set that all processes read whole; ``reason`` leads to why its batches are meant for one of them."""

    site: Site
    reason: Reason
    use: Literal["divided", "part", "mapped"]
    """Whether the size of its batches was divided, or they are a part of a global array, or rows for a map."""


class UnsharedData:
    """Finds such data sets."""

    def __init__(self, content: Origins, sharing: Sharing, quantities: Quantities, multi: MultiProcess) -> None:
        self.ev = content.ev
        self.content = content
        self.sharing = sharing
        self.multi = multi
        self.quantities = quantities
        calls, reach = content.calls, content.reach
        self._portion = Origins(self.ev, calls, reach, Portion(quantities, "process"))
        text = "this is how many examples a batch has"
        of_any_size = Batches(lambda frame, number: Reason(Site(frame.ref, number), text, "loaded"))
        batches = Origins(self.ev, calls, reach, of_any_size)
        self._loaded = Origins(self.ev, calls, reach, Rows(quantities.table, batches))

    def found(self) -> Iterator[Unshared]:
        """Each such data set, once."""
        once: dict[Site, Unshared] = {}
        for ref in self.ev.project.functions():
            if not self.multi.surely_runs_several(ref.path) or self.sharing.picks(ref.path):
                continue
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                each = self._divided(frame, number, call) or self._passed_on(frame, call) or self._mapped(frame, call)
                if each is not None and each.site not in once and not self.sharing.gives_shares(ref.path):
                    once[each.site] = each
        yield from once.values()

    def _divided(self, frame: Frame, number: int, call: s.Call) -> Unshared | None:
        """The data that a call makes batches of, whose size was divided by the number of processes."""
        size = batch_size(self.ev, frame, call)
        found = self._portion.why(frame, size) if size is not None else None
        return self._unless_shuffled(Site(frame.ref, number), found, "divided") if found is not None else None

    def _passed_on(self, frame: Frame, call: s.Call) -> Unshared | None:
        """The data whose batches a call takes as this process's part."""
        part = own_part(self.ev, frame, call)
        found = self._loaded.why(frame, part) if part is not None else None
        return self._read(found, "part") if found is not None else None

    def _mapped(self, frame: Frame, call: s.Call) -> Unshared | None:
        """The data whose batches a map over the devices of all processes takes, of each process for its own."""
        callee = self.ev.callee(frame, call)
        if not isinstance(callee, Applied) or not self.quantities.mapped_over_all(callee):
            return None
        found = self._loaded.any_of(frame, [argument.value for argument in call.arguments])
        return self._read(found, "mapped") if found is not None else None

    def _read(self, loaded: Reason, use: Literal["part", "mapped"]) -> Unshared | None:
        return self._unless_shuffled(loaded.chain()[1].site, loaded, use)

    def _unless_shuffled(
        self, batched: Site, found: Reason, use: Literal["divided", "part", "mapped"]
    ) -> Unshared | None:
        """The data of some batches, unless each process draws its own by a seed that is meant to tell it apart."""
        frame = self.ev.free_frame(batched.ref)
        drawn = self.content.why(frame, batched.number)
        own = drawn is not None and drawn.source.kind == "identity" and drawn.passes("draw")
        return None if own else Unshared(self._source(frame, batched.number), found, use)

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
