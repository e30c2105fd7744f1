"""Functions that reach a map or jit through code that several functions share, such as a decorator around `shard_map`.

The call of the map is one line for all of them. What tells them apart, and where their specs are written, is the call
that hands a function to that code.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import CallEdge, MapUse, Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Site, Value, Values, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


def escapes(ev: Evaluator, ref: FunctionRef) -> bool:
    """Whether a function is returned, stored in an object or a list, or passed to unknown code."""
    name = ev.project.function(ref).name
    own = ev.project.enclosing_class(ref) is None
    for other in ev.project.functions():
        if own and other.path != ref.path:
            continue
        if not own and name not in ev.project.modules[other.path].words:
            continue
        function = ev.project.function(other)
        named = [n for n, o in enumerate(function.operations) if isinstance(o, _NAMING[own]) and o.name == name]
        if any(_is_handed_on(ev, other, function, number) for number in named):
            return True
    return False


_NAMING: dict[bool, type[s.Load] | type[s.Attribute]] = {True: s.Load, False: s.Attribute}


def _is_handed_on(ev: Evaluator, ref: FunctionRef, function: s.Function, number: int) -> bool:
    for operation in function.operations:
        if isinstance(operation, s.Return) and operation.value == number:
            return True
        if isinstance(operation, (s.StoreAttribute, s.StoreSubscript)) and operation.value == number:
            return True
        if isinstance(operation, s.Display) and number in operation.elements:
            return True
        if isinstance(operation, s.DictDisplay) and number in operation.values:
            return True
        if isinstance(operation, s.Call) and any(argument.value == number for argument in operation.arguments):
            # A library runs its argument as it is: `app.run(main)`. The result of a partial is passed on.
            callee = ev.callee(ev.free_frame(ref), operation)
            known = ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            return not isinstance(callee, External) or (known is not None and known.kind == "currying")
    return False


_MAX_CALLS = 8
"""The most calls, one inside another, that hand a function on."""


class Wrapped(Struct, frozen=True):
    """A function that is handed to the code that maps it: the function's ``name`` and where it is ``made``.

    ``call`` is the outermost call that hands it over, often a decorator. ``given`` is the argument asked for, if that
    call, or the one that makes the decorator, passes it.
    """

    name: str
    made: Site
    call: Site
    given: Site | None = None

    @property
    def place(self) -> Site:
        """Where a reader can mend what is wrong with the argument."""
        return self.given or self.call


class Wrappers:
    """Finds who hands a function to the code that maps it."""

    def __init__(self, evaluator: Evaluator, reach: Reach) -> None:
        self.ev = evaluator
        self.reach = reach

    def wrapped(self, use: MapUse, function: Value, parameter: str) -> Wrapped | None:
        """The function that ``use`` maps, if it is handed to the code around; ``parameter`` is the argument asked for.

        None if the function is made or named where it is mapped, or if it is not one of the project.
        """
        layers = list(_layers(function))
        inner = layers[-1]
        if not isinstance(inner, FunctionValue):
            return None
        edge, made = self._outermost(use.frame, layers), _made(inner)
        if edge is None or made is None:
            return None
        definition = self.ev.project.function(inner.ref)
        name = "the lambda" if definition.kind == "lambda" else definition.name
        return Wrapped(name, made, edge.site, self._passed(edge, self.ev.argument(use.applied, parameter)))

    def _outermost(self, frame: Frame, layers: list[Value]) -> CallEdge | None:
        """The call that hands the function to a frame, or to that frame's caller if this was handed it as well."""
        found = None
        for _ in range(_MAX_CALLS):
            taker = _taker(frame, layers)
            callers = self.reach.callers.get(taker.ref, ()) if taker is not None else ()
            edges = [each for each in callers if each.target.frame is taker]
            if not edges:
                break
            found = min(edges, key=lambda each: (each.site.ref.path, each.site.ref.index, each.number))
            frame = found.caller
        return found

    def _passed(self, edge: CallEdge, wanted: Values | None) -> Site | None:
        """The argument with these values, of a call or of the one that makes the function that it calls."""
        operations = edge.caller.code.operations
        call = operations[edge.number]
        while wanted is not None and isinstance(call, s.Call):
            for argument in call.arguments:
                if not argument.star and self.ev.value(edge.caller, argument.value) == wanted:
                    return Site(edge.caller.ref, argument.value)
            call = operations[call.function]
        return None


def _made(function: FunctionValue) -> Site | None:
    outer = function.outer
    made = outer.code.made_at.get(function.ref.index) if outer is not None else None
    return Site(outer.ref, made[0]) if outer is not None and made else None


def _layers(function: Value) -> Iterator[Value]:
    """A function, and what it is made of: the function of a partial or of a jit."""
    yield function
    if isinstance(function, Applied) and function.arguments.positional:
        inner = certain(function.arguments.positional[0])
        if inner is not None:
            yield from _layers(inner)


def _taker(frame: Frame, layers: list[Value]) -> Frame | None:
    """The frame with a parameter that holds the function: this one, or one around it."""
    around: Frame | None = frame
    while around is not None:
        if any(layer in values for values in around.given for layer in layers):
            return around
        around = around.outer
    return None
