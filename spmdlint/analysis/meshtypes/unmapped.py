"""Functions that no known map runs, and their branches on a value that they themselves reduce.

``lax.cond(jnp.isnan(loss), skip, update, state)`` in a function that returns ``lax.pmean(loss, "data")``: reducing a
value implies that it differs along the axis, and each device decides by its own value whether it joins the collective
in ``update``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    External,
    Frame,
    FunctionValue,
    Site,
    Values,
    certain,
)
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_BRANCHES = ("jax.lax.cond", "jax.lax.switch")
_REDUCTIONS = frozenset(("psum", "pmean", "pmax", "pmin"))
_COMPUTING = ("jax.numpy.", "optax.global_norm")
_METHODS = frozenset("all any astype item max mean min sum".split())
_DEPTH = 6


class OwnDecision(Struct, frozen=True):
    """A collective in a branch, the predicate, and the reduction that implies that it differs along the axis."""

    collective: Site
    name: str
    axis: str
    predicate: Site
    reduced: Site


class _Made(Struct, frozen=True):
    """A collective in a function: its name, its axes, and its argument."""

    site: Site
    name: str
    axes: frozenset[str]
    given: int | None


class Unmapped:
    """Finds such branches. One per run."""

    def __init__(self, calls: Calls, reach: Reach, table: Typing) -> None:
        self.ev: Evaluator = calls.ev
        self.calls = calls
        self.reach = reach
        self.table = table

    def decisions(self) -> Iterator[OwnDecision]:
        """Each such collective once."""
        for ref in self.reach.calling(_BRANCHES):
            around = self.reach.around_of(ref)
            if around.names or around.open:
                continue  # the body of a map, which is typed
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                callee = certain(self.ev.value(frame, call.function))
                if isinstance(callee, External) and callee.name in _BRANCHES and len(call.arguments) > 1:
                    yield from self._of_call(frame, number, call)

    def _of_call(self, frame: Frame, number: int, call: s.Call) -> Iterator[OwnDecision]:
        decides, *others = call.arguments
        asked = set(self._asked(frame, decides.value, _DEPTH)) if not decides.star else set()
        if not asked:
            return
        reduced = [(made, self._parts(frame, made.given)) for made in self._collectives(frame)]
        run: list[_Made] = []
        for inside in (each for other in others[:2] for each in self._branches(self.ev.value(frame, other.value))):
            made_there = list(self._collectives(inside))
            run += made_there
            reduced += [(made, self._from(frame, inside, made.given)) for made in made_there]
        predicate = Site(frame.ref, decides.value)
        for reduction, parts in reduced:
            if reduction.name in _REDUCTIONS and not asked.isdisjoint(parts):
                for made in run:
                    for axis in sorted(made.axes & reduction.axes):
                        yield OwnDecision(made.site, made.name, axis, predicate, reduction.site)

    def _branches(self, functions: Values) -> Iterator[Frame]:
        """The project functions among the branches."""
        for value in functions:
            if isinstance(value, FunctionValue):
                yield self.ev.free_frame(value.ref)
            elif isinstance(value, Collection):
                for element in value.elements:
                    yield from self._branches(element)

    def _collectives(self, frame: Frame) -> Iterator[_Made]:
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            callee = certain(self.ev.value(frame, call.function))
            if callee is None or any(argument.star for argument in call.arguments):
                continue
            for reached in self.calls.libraries(callee, self.ev.arguments(frame, call)):
                known = self.ev.knowledge.get(reached.name)
                if known is None or known.kind != "collective" or known.axes is None:
                    continue
                site = Site(frame.ref, number)
                named = self.ev.argument(Applied(reached.name, reached.arguments, site), known.axes)
                axes = self.calls.names(named) if named is not None else None
                given = call.arguments[0].value if call.arguments and call.arguments[0].keyword is None else None
                if axes is not None and not axes.open and self.table.rules.get(reached.name) not in ("index", "size"):
                    yield _Made(site, reached.name.rpartition(".")[2], axes.names, given)

    # -- values

    def _asked(self, frame: Frame, number: int, depth: int) -> Iterator[int]:
        """The stores of the names from which a predicate is computed by elementwise operations."""
        operation = frame.code.operations[number]
        inner: tuple[int, ...] = ()
        if isinstance(operation, s.Load):
            yield from self._stores(frame, number, operation, depth)
        elif isinstance(operation, (s.Unary, s.Binary, s.Compare)):
            inner = operands(operation)
        elif isinstance(operation, s.Call):
            callee = certain(self.ev.value(frame, operation.function))
            method = frame.code.operations[operation.function]
            if isinstance(callee, External) and callee.name.startswith(_COMPUTING):
                inner = tuple(argument.value for argument in operation.arguments)
            elif isinstance(method, s.Attribute) and method.name in _METHODS:
                inner = (method.base,)
        for each in inner if depth else ():
            yield from self._asked(frame, each, depth - 1)

    def _stores(self, frame: Frame, number: int, load: s.Load, depth: int) -> Iterator[int]:
        """The only store of a name before a load, and the stores of the names its value is computed from."""
        if not frame.code.function.binds(load.name):
            return
        stores = self.ev.reaching(frame, number, load.name)
        for store in stores if len(stores) == 1 else ():
            yield store
            made = frame.code.operations[store]
            value = frame.code.operations[made.value] if isinstance(made, s.Store) else None
            if depth and isinstance(made, s.Store) and isinstance(value, (s.Unary, s.Binary, s.Compare, s.Call)):
                yield from self._asked(frame, made.value, depth - 1)

    def _parts(self, frame: Frame, number: int | None) -> Iterator[int]:
        """The stores of the names in a pytree."""
        for load in self._loads(frame, number):
            name = frame.code.operations[load]
            if isinstance(name, s.Load) and frame.code.function.binds(name.name):
                stores = self.ev.reaching(frame, load, name.name)
                yield from stores if len(stores) == 1 else ()

    def _from(self, frame: Frame, inside: Frame, number: int | None) -> Iterator[int]:
        """The same for a pytree in a nested function, of names that it reads from this one."""
        here = frame.code.function
        for load in self._loads(inside, number):
            name = inside.code.operations[load]
            if isinstance(name, s.Load) and not inside.code.function.binds(name.name) and here.binds(name.name):
                stores = here.stores[name.name]
                yield from stores if len(stores) == 1 else ()

    def _loads(self, frame: Frame, number: int | None) -> Iterator[int]:
        operation = frame.code.operations[number] if number is not None else None
        if number is not None and isinstance(operation, s.Load):
            yield number
        elif isinstance(operation, (s.Display, s.DictDisplay)):
            parts = operation.elements if isinstance(operation, s.Display) else operation.values
            for part in parts:
                yield from self._loads(frame, part)
