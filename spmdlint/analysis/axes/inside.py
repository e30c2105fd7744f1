"""The collectives and constraints that certainly run inside a map, with the calls that lead to them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.arguments import NO_AXES, Axes
from spmdlint.analysis.callgraph.calls import Calls, Target
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.values import Applied, Arguments, Frame, Site
from spmdlint.program import summary as s

MAX_USES = 32
"""The most uses of axis names below one function that are kept."""


class NameUse(Struct, frozen=True):
    """A collective or constraint that runs inside a map; ``bound`` are the axes that maps between the two bind."""

    applied: Applied
    path: tuple[Site, ...] = ()
    bound: Axes = NO_AXES

    @property
    def site(self) -> Site:
        return self.applied.site


class Region(Struct, frozen=True):
    """A map and one use of axis names inside it."""

    map: MapUse
    use: NameUse
    binds: Axes


class Inside:
    """Collects uses bottom-up. One per run."""

    def __init__(self, calls: Calls, reach: Reach) -> None:
        self.ev = calls.ev
        self.calls = calls
        self.reach = reach
        self._memo: Memo[tuple[NameUse, ...]] = Memo((), ())

    def regions(self) -> Iterator[Region]:
        """Every map that is certainly reached, with each use inside it."""
        for use in self.reach.uses:
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or known.kind != "map" or use.frame not in self.reach.trusted:
                continue
            if expects_failure(self.ev, use.frame, use.site.number):
                continue
            binds = self.calls.bound(use.applied)
            for function in self.calls.functions_in(known, use.applied.arguments):
                for target in self.calls.targets(function, Arguments(), use.frame.depth + 1, arrays=True):
                    for inner in self._of_target(target):
                        yield Region(use, inner, binds)

    def uses(self, frame: Frame) -> tuple[NameUse, ...]:
        """The uses that run when a function runs in a frame, and that no undecided branch guards."""
        return self._memo.once(frame, lambda: tuple(self._uses(frame))[:MAX_USES])

    def _uses(self, frame: Frame) -> Iterator[NameUse]:
        for number, operation in frame.code.calls_in(sorted(self.reach.certainty.blocks(frame))):
            yield from self._of_call(frame, number, operation)

    def _of_call(self, frame: Frame, number: int, operation: s.Call) -> Iterator[NameUse]:
        callee = self.ev.callee(frame, operation)
        if callee is None:
            return
        site, arguments = Site(frame.ref, number), self.ev.arguments(frame, operation)
        found: list[NameUse] = []
        for reached in self.calls.libraries(callee, arguments):
            known = self.ev.knowledge.get(reached.name)
            if known is not None and known.kind in ("collective", "constraint"):
                found.append(NameUse(Applied(reached.name, reached.arguments, site), bound=reached.binds))
        for target in self.calls.targets(callee, arguments, frame.depth + 1):
            found += [replace(use, path=(site, *use.path)) for use in self._of_target(target)]
        errors = ("ValueError", "TypeError", "NameError")
        if found and not (expects_failure(self.ev, frame, number) or handles(self.ev, frame, number, *errors)):
            yield from found

    def _of_target(self, target: Target) -> Iterator[NameUse]:
        for use in self.uses(target.frame):
            yield replace(use, bound=use.bound | target.binds)
