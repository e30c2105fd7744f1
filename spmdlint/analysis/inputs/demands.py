"""What calls demand of all processes: which arguments must agree, and in what.

Most of it is data: `agree` in the knowledge says it of a function's parameters. The rest follows from what a call is: a
function that compiles takes an array of the host's for one that all processes have, and a call that combines the
processes' values, or a traced program, takes each element for the same one everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.callgraph.statics import static_arguments
from spmdlint.analysis.evaluation.bindings import by_position, passed
from spmdlint.analysis.evaluation.elements import tree
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.transfers import rows_of
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Frame,
    Free,
    Value,
    certain,
)
from spmdlint.analysis.placement.kinds import copied
from spmdlint.analysis.placement.questions import Placement
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s

Form = Literal["any", "listed", "picked", "rows", "hashed"]
"""Of a demand for one order: which arguments have elements that may be mistaken for one another."""
_HOST_ARRAYS = names("host_arrays")
_KEYS = "jax.random."


class Demand(Struct, frozen=True):
    """An argument of a call that must agree in one facet. ``layout`` says how it is laid out over devices, if known."""

    facet: str
    frame: Frame
    call: int
    value: int
    known: Known
    parameter: str = ""
    layout: Value | None = None
    form: Form = "any"
    spans: bool = False
    """Whether the layout is certainly over the devices of all processes."""
    entered: tuple[Frame, int] | None = None
    """The call that passes the layout to the function which makes this call, if its function is passed one."""

    @property
    def call_name(self) -> str:
        """What is called, in words."""
        if self.form == "hashed":
            return f"a function under {self.known.name}"
        return self.known.name.rpartition(".")[2] if self.form == "listed" else self.known.name


class Demands:
    """Lists them. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach, placement: Placement) -> None:
        self.ev = evaluator
        self.reach = reach
        self.placement = placement

    def all(self) -> Iterator[Demand]:
        """Every demand of every call of the program, function by function, and of maps where they are called."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                for known in rows_of(self.ev, frame, call):
                    yield from self._written(frame, number, call, known)
                compiled = certain(self.reach.constructed.called(frame, call))
                if isinstance(compiled, Applied):
                    yield from self._of_compiled(frame, number, call, compiled)
        for use in self.reach.uses:
            yield from self._of_map(use)

    def _written(self, frame: Frame, number: int, call: s.Call, known: Known) -> Iterator[Demand]:
        """What the knowledge says of the parameters, and of calls that combine what they are given in its order."""
        for parameter, facets in known.contract.items():
            value = passed(call, parameter, known.positional)
            if value is None:
                continue
            laid = passed(call, known.laid_out, known.positional) if known.laid_out is not None else None
            layout = certain(self.ev.value(frame, laid)) if laid is not None else None
            form: Form = "rows" if known.laid_out is not None else "any"
            for facet in facets:
                spans = laid is not None and facet == "order" and self.placement.spans(frame, laid)
                yield Demand(facet, frame, number, value, known, parameter, layout, form, spans)
                if facet == "copies" and laid is not None and (layout is None or isinstance(layout, Free)):
                    yield from self._passed_a_layout(Demand(facet, frame, number, value, known, parameter), laid)
        if known.splits:
            yield Demand("split", frame, number, number, known)
        given = [argument.value for argument in call.arguments]
        if known.composes and frame.ref in self.reach.host:
            yield from (Demand("order", frame, number, each, known) for each in given)
        elif known.parallel and known.agreement and frame.ref in self.reach.host:
            yield from (Demand("order", frame, number, each, known, form="listed") for each in given)
        sends = known.kind == "collective" or (known.stacks and known.name.startswith("jax."))
        if sends and frame.ref in self.reach.traced:
            yield from (Demand("order", frame, number, each, known, form="picked") for each in given[:1])

    def _passed_a_layout(self, demand: Demand, laid: int) -> Iterator[Demand]:
        """The same demand, once for each call that passes a layout to the function in which it is made."""
        here = any(said.here for said in self.placement.narrowed.of_value(demand.frame, laid))  # on this process alone
        for edge in self.reach.callers.get(demand.frame.ref, ()) if not here else ():
            entered = edge.target.frame
            layout = certain(self.ev.value(entered, laid)) if edge.target.way == "call" else None
            if layout is not None:
                yield replace(demand, frame=entered, layout=layout, form="rows", entered=(edge.caller, edge.number))

    def _of_compiled(self, frame: Frame, number: int, call: s.Call, compiled: Applied) -> Iterator[Demand]:
        """The keys and arrays of the host that a compiled function over all devices takes, and lists in any order."""
        known = self.ev.knowledge.get(compiled.name)
        if known is None or known.kind not in ("jit", "map"):
            return
        outputs = bool(self.ev.argument(compiled, "out_shardings"))
        static = {value for _, value in static_arguments(self.ev, compiled, call, ())}
        host = frame.ref in self.reach.host
        values = [argument.value for argument in call.arguments]
        # An array over all devices makes the call one of all processes.
        held = (place for value in values for place, _ in tree(self.ev, frame, value))
        among_all = host and known.kind == "jit" and any(self.placement.spans(*place) for place in held)
        for value in values:
            if host:
                yield Demand("order", frame, number, value, known, form="hashed")
            made = certain(self.ev.value(frame, value))
            if known.kind == "map" and known.specs and known.spans:
                if isinstance(made, Applied) and made.name.startswith(_HOST_ARRAYS):
                    yield Demand("array", frame, number, value, known)
            elif (
                known.kind == "jit"
                and outputs
                and random_by(self.ev, frame, value)
                and self.placement.spans(frame, number)
            ):
                yield Demand("key", frame, number, value, known)
            elif among_all and value not in static:
                yield Demand("argument", frame, number, value, known)

    def _of_map(self, use: MapUse) -> Iterator[Demand]:
        """The arguments of a map or compiled function that it takes for copies: a spec of its own says so."""
        known = self.ev.knowledge.get(use.applied.name)
        if known is None or known.laid_out is None or use.frame not in self.reach.trusted:
            return
        for site in self.reach.use_calls.get(use.site, ()):
            frame = self.ev.free_frame(site.ref)
            call = frame.code.operations[site.number]
            if site.ref in self.reach.host and isinstance(call, s.Call) and not any(a.star for a in call.arguments):
                for position, value in enumerate(by_position(call)):
                    layout = self._layout(use, known.laid_out, position)
                    if layout is not None and copied(self.ev, layout):
                        yield Demand("copies", frame, site.number, value, known, "", layout)

    def _layout(self, use: MapUse, parameter: str, position: int) -> Value | None:
        """How an argument of a map is laid out."""
        given = self.ev.argument(use.applied, parameter)
        layout = certain(given) if given is not None else None
        if isinstance(layout, Collection):
            known = position < len(layout.elements) and not layout.open
            return certain(layout.elements[position]) if known else None
        return layout


def random_by(evaluator: Evaluator, frame: Frame, number: int) -> str | None:
    """The function by which a value is a key or random numbers from a key, or one of several of them."""
    made = frame.code.operations[resolved(evaluator, frame, number)]
    if isinstance(made, (s.Item, s.Subscript)):
        number = made.value if isinstance(made, s.Item) else made.base
    value = certain(evaluator.value(frame, number))
    return value.name if isinstance(value, Applied) and value.name.startswith(_KEYS) else None
