"""Values that a process puts on devices which are not its own, or not its own only.

Nothing can be put on a device of a different process, and `jax.device_put` to a sharding over the devices of all
processes takes its argument for the whole array, which has to be the same on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import clauses_around
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, Frame, Site, certain
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.placement.kinds import SPANS, copied
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.guarded import called_by_some, guarded
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s

_OWN = ("data", "identity")


class Placed(Struct, frozen=True):
    """A value that is put on the first of all devices, on ``each`` of them, or on all although it is a process's own.

    ``devices`` says where these are listed, or where their mesh is made; ``reason``, in the last case, why the value
    differs, and ``copied`` whether each device gets a copy of it.
    """

    site: Site
    devices: Site
    each: bool = False
    reason: Reason | None = None
    copied: bool = False


class Placements:
    """Finds such values. ``content`` says what differs between processes."""

    def __init__(
        self,
        evaluator: Evaluator,
        reach: Reach,
        quantities: Quantities,
        content: Origins,
        multi: MultiProcess,
        placement: Placement,
    ) -> None:
        self.ev = evaluator
        self.reach = reach
        self.quantities = quantities
        self.content = content
        self.multi = multi
        self.conditions = evaluator.once(Conditions)
        self.control = evaluator.once(Control)
        self.placement = placement

    def found(self) -> Iterator[Placed]:
        """Each such call, once, in code that all processes run."""
        told: set[Site] = set()
        for use in self.reach.applications:
            names = self.quantities.table.placers.get(use.applied.name)
            frame = self.ev.free_frame(use.site.ref)
            call = frame.code.operations[use.site.number]
            if names is None or use.site in told or not isinstance(call, s.Call) or use.frame not in self.reach.trusted:
                continue
            found = self._placed(frame, use, call, *names)
            if found is not None and not self._by_some(frame, use.site.number, each=found.each):
                told.add(use.site)
                yield found

    def _placed(self, frame: Frame, use: MapUse, call: s.Call, what: str, where: str) -> Placed | None:
        positional = (what, where) if what else (where,)
        target, value = passed(call, where, positional), passed(call, what, positional) if what else None
        known = self.ev.knowledge.get(use.applied.name)
        each = known is not None and known.per_device
        listed = self._of_others(frame, target, each=each) if target is not None else None
        if listed is not None:
            sure = frame.code.function.block_of[use.site.number] in self.reach.certainty.blocks(frame)
            tried = any(clauses_around(frame.code.function, use.site.number))
            return Placed(use.site, listed, each) if sure and not tried and self.multi.needs(frame.ref.path) else None
        if value is None or frame.ref not in self.reach.host:
            return None
        sharding = self.ev.argument(use.applied, where)
        to = ordered(sharding or frozenset())
        mesh = self.placement.surely(SPANS, frame, target) if target is not None else None
        reason = self.content.why(frame, value) if mesh is not None else None
        if mesh is None or reason is None or reason.kind not in _OWN:
            return None
        everywhere = bool(to) and all(copied(self.ev, one) for one in to)
        return Placed(use.site, mesh.source.site, reason=reason, copied=everywhere)

    def _of_others(self, frame: Frame, number: int, *, each: bool) -> Site | None:
        """Where all devices are listed, if these are they, for ``each`` of them, or one of them by a literal index."""
        element, base = frame.code.operations[resolved(self.ev, frame, number)], number
        if not each:
            if not isinstance(element, s.Subscript) or not isinstance(frame.code.operations[element.index], s.Const):
                return None
            base = element.base
        made = certain(self.ev.value(frame, base))
        if isinstance(made, Applied) and self.quantities.table.lists.get(made.name) == "device":
            whole = not made.arguments.positional and not made.arguments.keywords
            return made.site if whole or self.multi.starts(frame.ref.path) else None
        listed = self.quantities.quantity(frame, base)
        return listed.site if listed is not None and (listed.role, listed.unit) == ("list", "device") else None

    def _by_some(self, frame: Frame, number: int, *, each: bool) -> bool:
        """Whether a single-process job reaches a call, or only the process whose device it may be, not ``each``."""
        alone = self.conditions.alone(frame, frame.code.function.block_of[number])
        if alone or each:
            return alone
        guard = guarded(self.content, self.control, frame, number)
        return guard is not None or called_by_some(self.content, self.control, frame.ref) is not None
