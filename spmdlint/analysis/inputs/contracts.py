"""Whether arguments agree in what calls demand of them: one check of every facet of every argument of every call.

`demands.py` lists what must agree, the facets of variance and the orders say whether it does and why not, and the rule
that tells of it follows from the facet and the kind of cause, by the table in the knowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.participants import names_participants, on_local_devices
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.elements import tree
from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    FunctionValue,
    Site,
    certain,
)
from spmdlint.analysis.inputs.demands import Demand, Demands
from spmdlint.analysis.inputs.seeds import SharedSeeds
from spmdlint.analysis.order.stacked import Columns, is_picked, is_stacked
from spmdlint.analysis.placement.kinds import copied
from spmdlint.analysis.variance.conditions import Conditions
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.parts import holds_part
from spmdlint.analysis.variance.reason import of_kind
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.contracts import told_by
from spmdlint.program import summary as s

# Tests name their folders in this way.
_SCRATCH = "tempfile."
_OWN = "identity"


class Breach(Struct, frozen=True):
    """An argument that differs between processes although its call demands that it agrees, and why it differs."""

    code: str
    demand: Demand
    reason: Reason

    @property
    def call(self) -> Site:
        return Site(self.demand.frame.ref, self.demand.call)

    @property
    def site(self) -> Site:
        return Site(self.demand.frame.ref, self.demand.value)

    @property
    def layout(self) -> Site | None:
        """Where it is written how the argument is laid out."""
        layout = self.demand.layout
        return layout.site if isinstance(layout, Applied) else None


class Contracts:
    """The check. ``orders`` say what is in an order of this process's own. One per run."""

    def __init__(
        self,
        demands: Demands,
        facets: Facets,
        orders: Sequence[Origins],
        seeds: SharedSeeds,
        multi: MultiProcess,
        *,
        preview: bool,
    ) -> None:
        self.demands = demands
        self.ev = demands.ev
        self.content = facets.content
        self.orders = orders
        self.columns = [Origins(self.ev, each.calls, each.reach, Columns(each)) for each in orders]
        self.seeds = seeds
        self.multi = multi
        self.preview = preview
        self._why: Mapping[str, Callable[[Demand], Reason | None]] = {
            "argument": self._in_tree,
            "order": lambda demand: next(filter(None, self._orders_of(demand)), None),
            "copies": self._copied,
            "deal": self._dealt,
            "records": self._records,
            "split": lambda demand: self.orders[-1].why(demand.frame, demand.value),
        }
        self._matters: Mapping[str, Callable[[Demand, Reason], bool]] = {
            "argument": self._is_of_all,
            "array": self._in_several,
            "content": self._in_several,
            "copies": self._is_of_all,
            "key": self._in_several,
            "name": self._may_meet,
            "seed": lambda demand, reason: self.seeds.are_shared(demand.frame, demand.call, demand.value, reason),
            "split": lambda demand, _: self.seeds.serves_several(demand.frame.ref),
        }

    def broken(self, code: str) -> Iterator[Breach]:
        """Those that one rule tells of, in the order of the program."""
        return (each for each in self._all if each.code == code)

    @cached_property
    def _all(self) -> tuple[Breach, ...]:
        found = (self._broken(demand) for demand in self.demands.all())
        once = {(each.code, each.call, each.site): each for each in found if each is not None}
        return tuple(once.values())

    def _broken(self, demand: Demand) -> Breach | None:
        found, matters = self._why.get(demand.facet, self._differs)(demand), self._matters.get(demand.facet)
        for reason in found.each() if found is not None else ():
            told = told_by(demand.facet, reason.kind)
            if told is not None and (told.sure or self.preview) and (matters is None or matters(demand, reason)):
                return Breach(told.code, demand, reason)
        return None

    # -- why an argument differs

    def _differs(self, demand: Demand) -> Reason | None:
        return self.content.why(demand.frame, demand.value)

    def _in_tree(self, demand: Demand) -> Reason | None:
        """Why an argument differs, or something in it if it is a tree."""
        for place, _ in tree(self.ev, demand.frame, demand.value, self.ev.once(Conditions).is_for_one):
            found = self.content.why(*place)
            if found is not None:
                is_whole = place == (demand.frame, demand.value)
                return found if is_whole else self.content.step(*place, "it is in this argument", found)
        return None

    def _copied(self, demand: Demand) -> Reason | None:
        """Why a value differs of which each device gets a copy, or what a function returns for it."""
        if demand.layout is None or not copied(self.ev, demand.layout):
            return None
        if demand.entered is not None:
            inside = replace(demand, entered=None)
            return self.content.within(demand.frame, *demand.entered, lambda: self._copied(inside))
        made = certain(self.ev.value(demand.frame, demand.value))
        if not isinstance(made, FunctionValue):
            found = self._differs(demand)
            # That this very call takes it for the process's part says nothing of what it is.
            here = found is not None and found.source.site == Site(demand.frame.ref, demand.call)
            return None if here else found
        body = self.ev.entered_frame(made, Arguments(open=True), demand.frame.depth + 1)
        return self.content.of_returns(body) if body is not None else None

    def _orders_of(self, demand: Demand) -> Iterator[Reason | None]:
        frame, value = demand.frame, demand.value
        if demand.form == "rows":
            layout = demand.layout
            everywhere = demand.known.local is None and demand.spans
            same = layout is not None and copied(self.ev, layout)
            if demand.known.local is not None or everywhere or same:
                yield from (each.why(frame, value) for each in self.columns)
            if everywhere or same:
                yield from (each.why(frame, value) for each in self.orders if is_stacked(each, frame, value))
            return
        order = self.orders[0]
        if demand.form == "listed" and not is_stacked(order, frame, value):
            return
        if demand.form == "picked" and not is_picked(self.ev, frame, value):
            return
        found = order.why(frame, value)
        yield of_kind(found, "hash") if demand.form == "hashed" else found

    def _records(self, demand: Demand) -> Reason | None:
        """Why records stand in another order on each process, of which a library gives each its part by number."""
        call, known = demand.frame.code.operations[demand.call], demand.known
        if not isinstance(call, s.Call) or holds_part(self.content, demand.frame, demand.call, call, known) is None:
            return None
        return next((found for each in self.orders if (found := each.why(demand.frame, demand.value))), None)

    def _dealt(self, demand: Demand) -> Reason | None:
        """Why a seed differs with which a library shuffles all records before it deals them out."""
        call, known = demand.frame.code.operations[demand.call], demand.known
        part = passed(call, known.dealt, known.positional) if isinstance(call, s.Call) and known.dealt else None
        if known.dealt and (part is None or self.content.why(demand.frame, part) is None):
            return None
        return self._differs(demand)

    # -- whether it matters

    def _in_several(self, demand: Demand, _: Reason) -> bool:
        return self.multi.runs_several(demand.frame.ref.path)

    def _is_of_all(self, demand: Demand, reason: Reason) -> bool:
        """Whether the copies are on the devices of several processes."""
        if demand.known.kind == "map":
            return reason.kind == _OWN
        path, layout = demand.frame.ref.path, demand.layout
        local = layout is not None and on_local_devices(layout)
        several = self.multi.joins(path) or (reason.kind == _OWN and self.multi.meets(path))
        several = several or (reason.kind in ("clock", "entropy") and self.multi.surely_runs_several(path))
        return several and not local and not self.multi.tests_one_process(path)

    def _may_meet(self, demand: Demand, reason: Reason) -> bool:
        """Whether processes look for one another by a name: each may also save for itself, into a folder of its own."""
        call, path = demand.frame.code.operations[demand.call], demand.frame.ref.path
        if isinstance(call, s.Call) and names_participants(self.ev, self.ev.arguments(demand.frame, call)):
            return False
        single = self.multi.tests_one_process(path)
        if demand.known.checkpoint and not self.preview and (single or not self.multi.runs_several(path)):
            return False  # a single-process program names its folders as it likes
        scratch = demand.known.checkpoint and reason.source.text.startswith(_SCRATCH)
        return not scratch or (self.preview and not single)
