"""Meshes, partition specs, permutations: what JAX checks of them when it traces, checked before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spmdlint.analysis.calls import Axes, Calls
from spmdlint.analysis.evaluate import Evaluator
from spmdlint.analysis.intent import expects_failure, handles
from spmdlint.analysis.reach import MapUse, Reach
from spmdlint.analysis.values import (
    Applied,
    Arguments,
    Collection,
    Constant,
    DictionaryValue,
    FunctionValue,
    Site,
    Values,
    certain,
    constant,
)


@dataclass(frozen=True, slots=True)
class AxisNotInMesh:
    """A spec names an axis that the mesh it is put on lacks."""

    site: Site
    axis: str
    user: Site
    library: str
    mesh: Axes


@dataclass(frozen=True, slots=True)
class RepeatedAxis:
    """One axis twice in a mesh, or in the spec of one array."""

    site: Site
    axis: str
    what: str


@dataclass(frozen=True, slots=True)
class WrongStructure:
    """Specs or axes for another number of arguments or results than the function has."""

    site: Site
    parameter: str
    given: int
    least: int
    most: int
    function: str
    results: bool


@dataclass(frozen=True, slots=True)
class BadPermutation:
    """Pairs of a permutation that share a source or a destination."""

    site: Site
    repeated: int
    role: str


@dataclass(frozen=True, slots=True)
class MissingFunction:
    """A map called without the function to map."""

    site: Site
    library: str
    keywords: tuple[str, ...]


class Specs:
    """Checks every application of a library's function that is reached for sure."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach

    def _applications(self) -> Iterator[MapUse]:
        for use in self.reach.applications:
            if use.frame not in self.reach.trusted or expects_failure(self.ev, use.frame, use.site.number):
                continue
            if not handles(self.ev, use.frame, use.site.number, "ValueError", "TypeError"):
                yield use

    # -- 102, 103

    def not_in_mesh(self) -> Iterator[AxisNotInMesh]:
        """Axes of specs that their mesh lacks."""
        for use in self._applications():
            axes = self._axes_for_specs(use.applied)
            if axes is None or axes.open:
                continue
            for spec in self._specs(use.applied):
                for name in self._names_in(spec):
                    if name not in axes.names:
                        yield AxisNotInMesh(spec.site, name, use.site, use.applied.name, axes)

    def repeated(self) -> Iterator[RepeatedAxis]:
        """Axes that stand twice in a mesh, or in one spec that is put on a mesh."""
        for use in self._applications():
            known = self.ev.knowledge.get(use.applied.name)
            if known is not None and known.kind == "mesh" and known.axes is not None:
                given = self.ev.argument(use.applied, known.axes)
                for name in _twice(self._spelled(given)) if given is not None else ():
                    yield RepeatedAxis(use.site, name, "mesh")
            for spec in self._specs(use.applied):
                for name in _twice(self._names_in(spec)):
                    yield RepeatedAxis(spec.site, name, "spec")

    def _axes_for_specs(self, applied: Applied) -> Axes | None:
        """The axes that the specs of an application may name; None if it takes no specs."""
        known = self.ev.knowledge.get(applied.name)
        if known is None or not known.specs or known.mesh is None:
            return None
        only = self.ev.argument(applied, known.only) if known.only is not None else None
        if only is not None:
            narrowed = self.calls.names(only)
            if narrowed.open or narrowed.names:
                return narrowed
        mesh = self.ev.argument(applied, known.mesh)
        return self.calls.of_mesh(mesh) if mesh is not None else None

    def _specs(self, applied: Applied) -> Iterator[Applied]:
        """The partition specs in the arguments of an application, wherever they stand in a pytree."""
        known = self.ev.knowledge.get(applied.name)
        for parameter in known.specs if known is not None else ():
            values = self.ev.argument(applied, parameter)
            if values is not None:
                yield from self._leaves(values)

    def _leaves(self, values: Values) -> Iterator[Applied]:
        value = certain(values)
        if isinstance(value, Collection):
            for element in value.elements:
                yield from self._leaves(element)
        elif isinstance(value, DictionaryValue):
            for _, element in value.items:
                yield from self._leaves(element)
        elif isinstance(value, Applied):
            known = self.ev.knowledge.get(value.name)
            if known is not None and known.kind == "spec":
                yield value

    def _names_in(self, spec: Applied) -> list[str]:
        return [name for entry in spec.arguments.positional for name in self._spelled(entry)]

    def _spelled(self, values: Values) -> list[str]:
        """The axis names that a value spells for sure, in order, repetitions kept."""
        value = certain(values)
        if isinstance(value, Constant):
            return [value.value] if isinstance(value.value, str) else []
        if isinstance(value, Collection) and value.kind != "set":
            return [name for element in value.elements for name in self._spelled(element)]
        return []

    # -- 104

    def structure(self) -> Iterator[WrongStructure]:
        """Tuples of specs that do not fit the function's parameters or results."""
        for use in self._applications():
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or "in_specs" not in known.specs:
                continue
            for function in self.calls.functions_in(known, use.applied.arguments):
                if isinstance(function, FunctionValue):
                    yield from self._parameters(use, function)
                    yield from self._results(use, function)

    def _parameters(self, use: MapUse, function: FunctionValue) -> Iterator[WrongStructure]:
        values = self.ev.argument(use.applied, "in_specs")
        given = certain(values) if values is not None else None
        if not isinstance(given, Collection) or given.open or given.kind != "tuple":
            return
        definition = self.ev.project.function(function.ref)
        positional = [f for f in definition.formals if f.kind in ("positional-only", "standard")]
        if any(f.kind == "*" for f in definition.formals):
            return
        bound = 1 if function.receiver is not None else 0
        least = sum(1 for f in positional if not f.default) - bound
        most = len(positional) - bound
        count = len(given.elements)
        if not least <= count <= most:
            yield WrongStructure(use.site, "in_specs", count, least, most, definition.name, results=False)

    def _results(self, use: MapUse, function: FunctionValue) -> Iterator[WrongStructure]:
        values = self.ev.argument(use.applied, "out_specs")
        given = certain(values) if values is not None else None
        if not isinstance(given, Collection) or given.open or given.kind != "tuple":
            return
        for target in self.calls.targets(function, Arguments(), use.frame.depth + 1, arrays=True):
            result = certain(self.ev.returned(target.frame))
            if isinstance(result, Collection) and not result.open and result.kind == "tuple":
                count, due = len(given.elements), len(result.elements)
                if count != due:
                    name = self.ev.project.function(function.ref).name
                    yield WrongStructure(use.site, "out_specs", count, due, due, name, results=True)

    # -- 106, 108

    def permutations(self) -> Iterator[BadPermutation]:
        """Permutations in which two pairs share a source, or a destination."""
        for use in self._applications():
            given = self.ev.argument(use.applied, "perm")
            pairs = certain(given) if given is not None else None
            if not isinstance(pairs, Collection) or pairs.open:
                continue
            for position, role in enumerate(("source", "destination")):
                ends = [_end(pair, position) for pair in pairs.elements]
                repeated = next((e for n, e in enumerate(ends) if e is not None and e in ends[:n]), None)
                if repeated is not None:
                    yield BadPermutation(use.site, repeated, role)

    def missing_functions(self) -> Iterator[MissingFunction]:
        """Maps called with everything but their function."""
        for use in self._applications():
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or not known.needs_function or use.applied.arguments.open:
                continue
            if not use.applied.arguments.positional and self.ev.argument(use.applied, known.function[0]) is None:
                keywords = tuple(name for name, _ in use.applied.arguments.keywords)
                yield MissingFunction(use.site, use.applied.name, keywords)


def _twice(names: list[str]) -> list[str]:
    return sorted({name for position, name in enumerate(names) if name in names[:position]})


def _end(pair: Values, position: int) -> int | None:
    value = certain(pair)
    if isinstance(value, Collection) and len(value.elements) == 2:
        end = constant(value.elements[position])
        if end is not None and isinstance(end.value, int):
            return end.value
    return None
