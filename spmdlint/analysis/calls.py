"""What runs when a value is called: the project's functions, and the axes that are bound around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.values import (
    Applied,
    Arguments,
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Value,
    Values,
    certain,
)
from spmdlint.knowledge.load import Known

Way = Literal["call", "transform", "apply", "jit", "map"]


@dataclass(frozen=True, slots=True)
class Axes:
    """Names of axes; ``open`` where there may be others."""

    names: frozenset[str] = frozenset()
    open: bool = False

    def __or__(self, other: Axes) -> Axes:
        return Axes(self.names | other.names, self.open or other.open)


NO_AXES = Axes()
ANY_AXES = Axes(open=True)


@dataclass(frozen=True, slots=True)
class Target:
    """A frame that a call runs, how it gets there, and the axes bound on the way."""

    frame: Frame
    way: Way
    binds: Axes = NO_AXES
    library: str = ""


class Calls:
    """Resolves calls. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.knowledge = evaluator.knowledge

    def targets(self, callee: Value, arguments: Arguments, depth: int, *, arrays: bool = False) -> Iterator[Target]:
        """The frames of the project that run when a value is called with these arguments."""
        if isinstance(callee, FunctionValue):
            frame = self.ev.entered_frame(callee, arguments, depth, arrays=arrays)
            if frame is not None:
                yield Target(frame, "call")
        elif isinstance(callee, ClassValue):
            for method in ("__init__", "__post_init__"):
                inner = certain(self.ev.objects.attribute(Instance(callee, arguments), method))
                if isinstance(inner, FunctionValue):
                    yield from self.targets(inner, arguments, depth)
                    break
        elif isinstance(callee, Instance):
            inner = certain(self.ev.objects.attribute(callee, "__call__"))
            if isinstance(inner, FunctionValue):
                yield from self.targets(inner, arguments, depth, arrays=arrays)
        elif isinstance(callee, External):
            yield from self._apply(callee.name, arguments, depth)
        elif isinstance(callee, Applied):
            yield from self._applied(callee, arguments, depth, arrays=arrays)

    def _apply(self, name: str, arguments: Arguments, depth: int) -> Iterator[Target]:
        """A library's function that calls the functions it is given, here and now."""
        known = self.knowledge.get(name)
        if known is None or known.kind != "apply":
            return
        for function in self.functions_in(known, arguments):
            for target in self.targets(function, Arguments(), depth, arrays=True):
                yield replace(target, way=_outermost("apply", target.way), library=target.library or name)

    def _applied(self, callee: Applied, arguments: Arguments, depth: int, *, arrays: bool) -> Iterator[Target]:
        """A call of what a library made from a function: the map, the transformation, the partial."""
        known = self.knowledge.get(callee.name)
        if known is None or not known.function:
            return
        if known.kind == "currying":
            rest = callee.arguments.positional[1:]
            merged = Arguments(
                (*rest, *arguments.positional),
                (*callee.arguments.keywords, *arguments.keywords),
                callee.arguments.open or arguments.open,
            )
            for function in self.functions_in(known, callee.arguments):
                yield from self.targets(function, merged, depth, arrays=arrays)
        elif known.kind in ("jit", "map", "transform"):
            binds = self.bound(callee) if known.kind == "map" else NO_AXES
            for function in self.functions_in(known, callee.arguments):
                if callee.receiver is not None and isinstance(function, FunctionValue):
                    function = replace(function, receiver=callee.receiver)
                for target in self.targets(function, arguments, depth, arrays=True):
                    yield Target(
                        target.frame,
                        _outermost(known.kind, target.way),
                        binds | target.binds,
                        callee.name,
                    )

    def functions_in(self, known: Known, arguments: Arguments) -> Iterator[Value]:
        """The functions that a library's function was given, where there is no doubt about them."""
        for parameter in known.function:
            values = arguments.keyword(parameter)
            if values is None and parameter in known.positional:
                position = known.positional.index(parameter)
                if position < len(arguments.positional):
                    values = arguments.positional[position]
            if values is None:
                continue
            value = certain(values)
            if isinstance(value, Collection):
                yield from (inner for inner in map(certain, value.elements) if inner is not None)
            elif value is not None:
                yield value

    # -- axes

    def bound(self, applied: Applied) -> Axes:
        """The axes that a map binds inside its function."""
        known = self.knowledge.get(applied.name)
        if known is None or known.opaque:
            return ANY_AXES
        if known.axes is not None:
            given = self.ev.argument(applied, known.axes)
            if given is None:
                return ANY_AXES if applied.arguments.open else NO_AXES
            return self.names(given)
        if known.mesh is not None:
            only = self.ev.argument(applied, known.only) if known.only is not None else None
            if only is not None:
                return self.names(only)
            given = self.ev.argument(applied, known.mesh)
            return self.of_mesh(given) if given is not None else ANY_AXES
        return ANY_AXES

    def of_mesh(self, values: Values) -> Axes:
        """The axes of a mesh."""
        mesh = certain(values)
        if isinstance(mesh, Applied):
            known = self.knowledge.get(mesh.name)
            if known is not None and known.kind == "mesh" and known.axes is not None:
                given = self.ev.argument(mesh, known.axes)
                return self.names(given) if given is not None else ANY_AXES
        return ANY_AXES

    def names(self, values: Values) -> Axes:
        """The axis names that a value spells: a string, a tuple of them, None for no axis."""
        found: set[str] = set()
        for value in values:
            if isinstance(value, Constant) and (value.value is None or isinstance(value.value, str)):
                if isinstance(value.value, str):
                    found.add(value.value)
            elif isinstance(value, Collection) and not value.open:
                inner = [self.names(element) for element in value.elements]
                if any(axes.open for axes in inner):
                    return ANY_AXES
                found.update(name for axes in inner for name in axes.names)
            elif isinstance(value, DictionaryValue) and not value.open:
                found.update(str(key) for key, _ in value.items)
            elif isinstance(value, Applied) and value.name in _COLLECTORS:
                if not value.arguments.positional:
                    continue
                inner_axes = self.names(value.arguments.positional[0])
                if inner_axes.open:
                    return ANY_AXES
                found.update(inner_axes.names)
            else:
                return ANY_AXES
        return Axes(frozenset(found)) if len(values) == 1 else Axes(frozenset(found), open=True)


# They make a collection of the axis names that they are given.
_COLLECTORS = tuple(f"builtins.{name}" for name in "set frozenset tuple list sorted".split())
_STRENGTH: dict[Way, int] = {"call": 0, "transform": 1, "apply": 2, "jit": 3, "map": 4}


def _outermost(outer: Way, inner: Way) -> Way:
    return outer if _STRENGTH[outer] >= _STRENGTH[inner] else inner
