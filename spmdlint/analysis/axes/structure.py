"""Compares specs with the parameters and results of the function that they are for."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.callgraph.calls import Calls, Target
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.callgraph.statics import static_places
from spmdlint.analysis.callgraph.wrapped import Wrapped, Wrappers
from spmdlint.analysis.evaluation.elements import returns
from spmdlint.analysis.evaluation.values import (
    UNKNOWN,
    Applied,
    Arguments,
    Called,
    Collection,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
)
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.testfiles import is_named_as_test

MAX_CALLS = 6
"""The most calls of compiled or mapped functions, one returned by another, that are followed."""


class WrongStructure(Struct, frozen=True):
    """Specs whose number differs from the number of the function's arguments or results.

    ``single``: the function returns one array. ``returns`` are the sites where it returns. ``wrapped`` is the function
    if it was handed to the code that maps it. ``bound`` is how many more arguments are bound, as by ``partial``.
    """

    site: Site
    parameter: str
    given: int
    least: int
    most: int
    function: str
    results: bool
    single: bool = False
    returns: tuple[Site, ...] = ()
    wrapped: Wrapped | None = None
    bound: int = 0


class _Positional(Struct, frozen=True):
    """The parameters that may be passed by position: the name, and whether it has a default.

    ``bound`` is how many others have their arguments already.
    """

    function: str
    parameters: tuple[tuple[str, bool], ...]
    bound: int = 0


def _is_stub(use: MapUse, function: Value) -> bool:
    """Whether a test passes this function to code of another file, which may never run it."""
    while isinstance(function, Applied) and function.arguments.positional:
        function = certain(function.arguments.positional[0]) or UNKNOWN
    if not isinstance(function, FunctionValue) or function.ref.path == use.site.ref.path:
        return False
    return is_named_as_test(function.ref.path) and not is_named_as_test(use.site.ref.path)


class Structure:
    """Compares one application of a map with the function that it maps."""

    def __init__(self, calls: Calls, reach: Reach) -> None:
        self.ev = calls.ev
        self.calls = calls
        self.reach = reach
        self.arrays = Arrays(calls)
        self.wrappers = Wrappers(calls.ev, reach)

    def check(self, use: MapUse) -> Iterator[WrongStructure]:
        """The mismatches of one application."""
        known = self.ev.knowledge.get(use.applied.name)
        names = _names(known) if known is not None else None
        if known is None or names is None:
            return
        parameter, of_results = names
        by_rows = parameter == "in_axes"
        for function in self.calls.functions_in(known, use.applied.arguments):
            if _is_stub(use, function):
                continue
            signature = self._without_statics(use, known, self._signature(function))
            count = self._count(use, parameter)
            if signature is not None and count is not None:
                least = sum(1 for _, default in signature.parameters if not default)
                most = len(signature.parameters)
                # The remaining ones may be passed by name, if there are axes for all that is passed by position.
                if count > most or (count < least and (not by_rows or self._passes_more(use, count))):
                    wrapped = self.wrappers.wrapped(use, function, parameter)
                    name = signature.function
                    ends = least, most
                    bound = signature.bound
                    yield WrongStructure(use.site, parameter, count, *ends, name, False, wrapped=wrapped, bound=bound)
            if of_results is not None:
                yield from self._results(use, function, of_results)

    def _passes_more(self, use: MapUse, count: int) -> bool:
        """Whether every call of a map passes more arguments by position than there are axes."""
        called = self.reach.use_calls.get(use.site, ())
        operations = (self.ev.project.function(site.ref).operations[site.number] for site in called)
        calls = [operation for operation in operations if isinstance(operation, s.Call)]
        static = static_places(self.ev, use.applied)
        return bool(calls) and all(
            not any(argument.star for argument in call.arguments)
            # Static arguments at the end need no axes.
            and not static.issuperset(range(count, sum(argument.keyword is None for argument in call.arguments)))
            for call in calls
        )

    def _count(self, use: MapUse, parameter: str) -> int | None:
        """The number of specs in a tuple; None unless the value is certainly a tuple."""
        values = self.ev.argument(use.applied, parameter)
        given = certain(values) if values is not None else None
        if isinstance(given, Collection) and not given.open and given.kind == "tuple":
            return len(given.elements)
        return None

    def _signature(self, value: Value) -> _Positional | None:
        if isinstance(value, FunctionValue):
            definition = self.ev.project.function(value.ref)
            if any(f.kind == "*" for f in definition.formals):
                inner = self._forwarded(value)
                return self._signature(inner) if inner is not None else None
            positional = [f for f in definition.formals if f.kind in ("positional-only", "standard")]
            bound = 1 if value.receiver is not None else 0
            return _Positional(definition.name, tuple((f.name, f.default) for f in positional[bound:]))
        known = self.ev.knowledge.get(value.name) if isinstance(value, Applied) else None
        if known is None or known.refs or known.kind not in ("currying", "jit", "map", "transform"):
            return None
        assert isinstance(value, Applied)
        functions = list(self.calls.functions_in(known, value.arguments))
        inner_signature = self._signature(functions[0]) if len(functions) == 1 else None
        if inner_signature is None or value.receiver is not None:
            return None
        return inner_signature if known.kind != "currying" else _curried(inner_signature, value.arguments)

    def _forwarded(self, function: FunctionValue) -> Value | None:
        """The function to which a wrapper forwards its arguments and nothing else: `return f(*args, **kwargs)`."""
        definition = self.ev.project.function(function.ref)
        frame = self.ev.frame(function.ref, {}, function.outer, 1)
        stars = [f.name for f in definition.formals if f.kind == "*"]
        if [f.kind for f in definition.formals] not in (["*"], ["*", "**"]):
            return None
        calls = [
            o for o in definition.operations if isinstance(o, s.Call) and o.arguments and o.arguments[0].star == "*"
        ]
        if len(calls) != 1 or any(each.star != "**" for each in calls[0].arguments[1:]):
            return None
        passed = definition.operations[calls[0].arguments[0].value]
        if not isinstance(passed, s.Load) or passed.name not in stars:
            return None
        return self.ev.callee(frame, calls[0])

    def _without_statics(self, use: MapUse, known: Known, signature: _Positional | None) -> _Positional | None:
        """The parameters that a jit takes arrays for; None if its static ones are not known by their positions."""
        if signature is None or known.kind != "jit":
            return signature
        if use.applied.arguments.open or any(
            self.ev.argument(use.applied, name) is not None for name in ("static_argnames", "static_argnums")
        ):
            return None
        return signature

    def _results(self, use: MapUse, function: Value, parameter: str) -> Iterator[WrongStructure]:
        count = self._count(use, parameter)
        if count is None:
            return
        for target in self._targets(function, use):
            name = self.ev.function(target.frame).name
            sites = tuple(Site(target.frame.ref, number) for number, _ in target.frame.code.of_kind(s.Return))
            dues = self._lengths(target.frame)
            single = not dues and self.arrays.returned(target.frame)
            if single:
                dues = {1}
            if single or (dues and count not in dues):
                wrapped = self.wrappers.wrapped(use, function, parameter)
                ends = min(dues), max(dues)
                yield WrongStructure(use.site, parameter, count, *ends, name, True, single, sites, wrapped)

    def _lengths(self, frame: Frame, depth: int = MAX_CALLS) -> set[int]:
        """The lengths of the tuples that a function returns, if it certainly returns nothing else.

        A returned result of a compiled or mapped function is followed as well.
        """
        results = self.ev.returned(frame)
        result = certain(results)
        if isinstance(result, Called) and depth and self.calls.keeps_results(result.function):
            targets = list(self.calls.targets(result.function, Arguments(), frame.depth + 1, arrays=True))
            return self._lengths(targets[0].frame, depth - 1) if len(targets) == 1 else set()
        found: set[int] = set()
        for each in results:
            if not isinstance(each, Collection) or each.open or each.kind != "tuple":
                return set()
            found.add(len(each.elements))
        return found

    def _targets(self, function: Value, use: MapUse) -> Iterator[Target]:
        """The frames whose result is the map's result; none if a transformation changes it."""
        if self.calls.keeps_results(function):
            yield from self.calls.targets(function, Arguments(), use.frame.depth + 1, arrays=True)


def _names(known: Known) -> tuple[str, str | None] | None:
    """The parameters of a map or jit with one entry for each argument, and with one for each result."""
    if known.kind == "map" and "in_axes" in known.parameters:
        return "in_axes", None
    found = [name for name in ("in_specs", "in_shardings") if name in known.specs]
    return (found[0], found[0].replace("in_", "out_")) if found else None


def _curried(signature: _Positional, arguments: Arguments) -> _Positional | None:
    if arguments.open:
        return None
    left = signature.parameters[len(arguments.positional) - 1 :]
    named = {name for name, _ in arguments.keywords}
    # Parameters after one that is passed by keyword cannot be passed by position.
    end = next((n for n, (name, _) in enumerate(left) if name in named), len(left))
    passed = len(signature.parameters) - len(left) + sum(name in named for name, _ in left)
    return _Positional(signature.function, left[:end], signature.bound + passed)


_METHODS = frozenset("sum mean max min prod astype reshape ravel flatten transpose dot var std argmax argmin".split())
MAX_DEPTH = 12


class Arrays:
    """Traces results back to the operations that make them."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.ev = calls.ev

    def returned(self, frame: Frame, depth: int = 0) -> bool:
        """Whether a function returns a single array on every path."""
        function = self.ev.function(frame)
        given = [value for _, value in returns(self.ev, frame)]
        if not given or function.generator or function.asynchronous:
            return False
        return all(value is not None and self._is_array(frame, value, depth) for value in given)

    def _is_array(self, frame: Frame, number: int, depth: int) -> bool:
        """Whether the value of an operation is a single array, because a call or arithmetic makes it."""
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Binary) and depth <= MAX_DEPTH:
            sides = (operation.left, operation.right)  # a sum or a product may be one of lists
            return operation.operator in ("-", "/", "//", "**", "@") or any(
                self._is_array(frame, n, depth + 1) for n in sides
            )
        if depth > MAX_DEPTH or not isinstance(operation, s.Call):
            return False
        callee = self.ev.callee(frame, operation)
        source = self.ev.function(frame).operations[operation.function]
        if isinstance(callee, External):
            return self.ev.knowledge.gives_array(callee.name)
        if isinstance(callee, (FunctionValue, Applied)):
            return self.result(callee, frame, operation, depth + 1)
        return callee is None and isinstance(source, s.Attribute) and source.name in _METHODS

    def result(self, callee: FunctionValue | Applied, frame: Frame, operation: s.Call, depth: int) -> bool:
        """Whether a call of a function, or of a mapped or compiled one (which keeps the pytree), returns one array."""
        if not self.calls.keeps_results(callee):
            return False
        targets = list(self.calls.targets(callee, self.ev.arguments(frame, operation), frame.depth + 1))
        return bool(targets) and all(self.returned(target.frame, depth) for target in targets)
