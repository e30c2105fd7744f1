"""Meshes, partition specs, permutations: what JAX checks while tracing, checked before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from spmdlint.analysis.axes.permutations import BadGroups, BadPermutation, groups, no_partition, repeated
from spmdlint.analysis.axes.structure import Structure, WrongStructure
from spmdlint.analysis.callgraph.arguments import Axes
from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.values import (
    NOTHING,
    Applied,
    Collection,
    Constant,
    DictionaryValue,
    Frame,
    Site,
    Values,
    certain,
)
from spmdlint.analysis.variance.control import Control
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs


class AxisNotInMesh(Struct, frozen=True):
    """A spec that names an axis its mesh lacks."""

    site: Site
    axis: str
    user: Site
    library: str
    mesh: Axes


class RepeatedAxis(Struct, frozen=True):
    """An axis that occurs twice in a mesh or in a spec."""

    site: Site
    axis: str
    what: str


class Specs:
    """Checks every application of a library function that is certainly reached. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach

    @cached_property
    def applications(self) -> tuple[MapUse, ...]:
        """Those that are certainly reached and are not expected to fail."""
        return tuple(self._find())

    def _find(self) -> Iterator[MapUse]:
        meant: dict[Site, bool] = {}  # by the source alone, so the same in all frames
        for use in self.reach.applications:
            if use.frame not in self.reach.trusted:
                continue
            if use.site not in meant:
                meant[use.site] = expects_failure(self.ev, use.frame, use.site.number)
            if meant[use.site]:
                continue
            if not handles(self.ev, use.frame, use.site.number, "ValueError", "TypeError"):
                yield use

    # -- 102, 103

    def not_in_mesh(self) -> Iterator[AxisNotInMesh]:
        """Axes in specs that their mesh lacks."""
        for use in self.applications:
            axes = self._axes_for_specs(use.applied)
            if axes is None or axes.open:
                continue
            for spec in self.specs_of(use.applied):
                unknown = [name for name in self.names_in(spec) if name not in axes.names]
                if unknown and not self._asked_before(use, spec):
                    for name in unknown:
                        yield AxisNotInMesh(spec.site, name, use.site, use.applied.name, axes)

    def _asked_before(self, use: MapUse, spec: Applied) -> bool:
        """Whether a spec from elsewhere is put on the mesh only under a condition that tests it for more than None."""
        frame, number = use.frame, use.site.number
        call = frame.code.operations[number]
        if spec.site.ref == use.site.ref or use.site.ref != frame.ref or not isinstance(call, s.Call):
            return False
        wanted = {name for argument in call.arguments for name in _names(frame, argument.value)}
        live = self.ev.live_blocks(frame)
        for branch in self.ev.once(Control).choosing(frame, (number,), None) if wanted else ():
            both = not live.isdisjoint(branch.yes) and not live.isdisjoint(branch.no | {branch.block})
            if both and not wanted.isdisjoint(_names(frame, branch.test, asked=True)):
                return True
        return False

    def repeated(self) -> Iterator[RepeatedAxis]:
        """Axes that occur twice in a mesh, or in a spec that is put on a mesh."""
        for use in self.applications:
            known = self.ev.knowledge.get(use.applied.name)
            if known is not None and known.kind == "mesh" and known.axes is not None:
                given = self.ev.argument(use.applied, known.axes)
                for name in _twice(self._spelled(given)) if given is not None else ():
                    yield RepeatedAxis(use.site, name, "mesh")
            for spec in self.specs_of(use.applied):
                for name in _twice(self.names_in(spec)):
                    yield RepeatedAxis(spec.site, name, "spec")

    def _axes_for_specs(self, applied: Applied) -> Axes | None:
        """The axes that the specs of an application may name; None if it takes no specs."""
        known = self.ev.knowledge.get(applied.name)
        if known is None or not known.specs:
            return None
        return self.calls.bound(applied) if known.kind == "map" else self.calls.mesh_of(applied)

    def named_by(self, applied: Applied) -> list[str]:
        """The axes that the specs of an application name, including those in its shardings."""
        known = self.ev.knowledge.get(applied.name)
        found: list[str] = []
        for parameter in known.specs if known is not None else ():
            for leaf in self._leaves(self.ev.argument(applied, parameter) or NOTHING, "spec", "sharding"):
                inner = self.ev.knowledge.get(leaf.name)
                found += self.named_by(leaf) if inner is not None and inner.kind == "sharding" else self.names_in(leaf)
        return found

    def specs_of(self, applied: Applied) -> Iterator[Applied]:
        """The partition specs in the arguments of an application, anywhere in a pytree."""
        known = self.ev.knowledge.get(applied.name)
        for parameter in known.specs if known is not None else ():
            values = self.ev.argument(applied, parameter)
            if values is not None and len(values) > 1 and self._of_one_table(values):
                for value in self.ev.in_order(values):
                    yield from self._leaves(frozenset((value,)), "spec")
            elif values is not None:
                yield from self._leaves(values, "spec")

    def _of_one_table(self, values: Values) -> bool:
        """Whether several values are all in one table display: each of its rows is for something else."""
        made = [value.site for value in values if isinstance(value, Applied)]
        if len(made) != len(values) or len({site.ref for site in made}) != 1:
            return False
        code = self.ev.code(made[0].ref)
        return any({site.number for site in made} <= _rows(code, table) for _, table in code.of_kind(s.Display))

    def _leaves(self, values: Values, *kinds: str) -> Iterator[Applied]:
        value = certain(values)
        if isinstance(value, Collection):
            for element in value.elements:
                yield from self._leaves(element, *kinds)
        elif isinstance(value, DictionaryValue):
            for _, element in value.items:
                yield from self._leaves(element, *kinds)
        elif isinstance(value, Applied) and self.ev.kind(value) in kinds:
            yield value

    def names_in(self, spec: Applied) -> list[str]:
        """The names that a spec certainly spells."""
        return [name for entry in spec.arguments.positional for name in self._spelled(entry)]

    def _spelled(self, values: Values) -> list[str]:
        """The axis names that a value certainly spells, in order, with repetitions."""
        value = certain(values)
        if isinstance(value, Constant):
            return [value.value] if isinstance(value.value, str) else []
        if isinstance(value, Collection) and value.kind != "set":
            return [name for element in value.elements for name in self._spelled(element)]
        return []

    # -- 104

    def structure(self) -> Iterator[WrongStructure]:
        """Tuples of specs that do not match the function's parameters or results."""
        check = Structure(self.calls, self.reach)
        for use in self.applications:
            yield from check.check(use)

    # -- 106, 107, 108

    def permutations(self) -> Iterator[BadPermutation]:
        """Permutations in which two pairs share a source or a destination."""
        for use in self.applications:
            known = self.ev.knowledge.get(use.applied.name)
            if known is not None and known.permutation is not None:
                given = self.ev.argument(use.applied, known.permutation)
                bad = repeated(use.site, known, given)
                if bad is not None:
                    yield bad

    def groups(self) -> Iterator[BadGroups]:
        """Groups that are not a partition."""
        for use in self.applications:
            known = self.ev.knowledge.get(use.applied.name)
            if known is not None and known.groups is not None:
                split = groups(self.ev.argument(use.applied, known.groups))
                if split is None:
                    continue
                devices = [device for group in split for device in group]
                bad = no_partition(use.site, devices)
                if bad is not None:
                    yield bad


def _rows(code: Code, table: s.Display) -> set[int]:
    """The operations in a table display, including those in its rows."""
    found = set(table.elements)
    for element in table.elements:
        row = code.operations[element]
        if isinstance(row, s.Display):
            found |= _rows(code, row)
    return found


def _twice(names: list[str]) -> list[str]:
    return sorted({name for position, name in enumerate(names) if name in names[:position]})


def _names(frame: Frame, number: int, *, asked: bool = False) -> Iterator[str]:
    """The names in an expression; ``asked``: those passed to a call, or to a comparison other than with None."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Load):
        if not asked:
            yield operation.name
        return
    if isinstance(operation, s.Compare) and set(operation.operators) <= {"is", "is not"}:
        return
    if isinstance(operation, (s.Call, s.Compare)):
        asked = False
    for value in inputs(operation):
        yield from _names(frame, value, asked=asked)
