"""Checks collectives and constraints against the maps around them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.axes.dropped import Dropped, DroppedResults
from spmdlint.analysis.axes.inside import Inside, Region
from spmdlint.analysis.axes.permutations import BadGroups, BadPermutation, groups, out_of_range, pairs
from spmdlint.analysis.axes.specs import Specs
from spmdlint.analysis.callgraph.arguments import Axes
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.standard import listed
from spmdlint.analysis.evaluation.values import Applied, Constant, Site, Values, constant
from spmdlint.knowledge.load import Known


class ManualConstraint(Struct, frozen=True):
    """A sharding constraint over an axis that the map ``map`` makes manual."""

    site: Site
    axis: str
    map: Site
    library: str


class AxisOrder(Struct, frozen=True):
    """A collective over several axes in a different order than that by which the specs of its map shard."""

    site: Site
    collective: str
    axes: tuple[str, ...]
    spec: Site
    specified: tuple[str, ...]


class Shadowed(Struct, frozen=True):
    """An axis name that a map binds although a map around it binds it as well."""

    site: Site
    axis: str
    library: str
    outer: Site
    outer_library: str


class Regions:
    """Checks every use of axis names inside every map. One per run."""

    def __init__(self, inside: Inside, specs: Specs, reach: Reach) -> None:
        self.inside = inside
        self.specs = specs
        self.reach = reach
        self.calls = inside.calls
        self.ev = inside.ev
        self._regions: tuple[Region, ...] | None = None

    def regions(self) -> tuple[Region, ...]:
        if self._regions is None:
            self._regions = tuple(self.inside.regions())
        return self._regions

    # -- 511

    def dropped(self) -> Iterator[Dropped]:
        """Reductions whose result nothing uses."""
        return DroppedResults(self.calls, self.reach).found()

    # -- 106, 107

    def permutations(self) -> Iterator[BadPermutation]:
        """Permutations with a device outside the axis."""
        for region, known, sizes in self._sized():
            if known.permutation is None or not sizes:
                continue
            ends = pairs(known, self.ev.argument(region.use.applied, known.permutation))
            bad = out_of_range(region.use.site, ends, sizes) if ends else None
            if bad is not None:
                yield bad

    def groups(self) -> Iterator[BadGroups]:
        """Groups of more or fewer devices than the axis has."""
        for region, known, sizes in self._sized():
            if known.groups is not None and sizes:
                split = groups(self.ev.argument(region.use.applied, known.groups))
                count = sum(map(len, split)) if split is not None else None
                if count is not None and count not in sizes:
                    yield BadGroups(region.use.site, count=count, size=min(sizes))

    def _sized(self) -> Iterator[tuple[Region, Known, frozenset[int]]]:
        """The collectives over one axis, each with the sizes that the axis may have there."""
        for region in self.regions():
            known = self.ev.knowledge.get(region.use.applied.name)
            if known is None or known.axes is None:
                continue
            given = self.ev.argument(region.use.applied, known.axes)
            axes = self.calls.names(given) if given is not None else Axes(open=True)
            if not axes.open and len(axes.names) == 1:
                (name,) = axes.names
                yield region, known, self._sizes(region, name)

    def _sizes(self, region: Region, name: str) -> frozenset[int]:
        """The sizes of an axis: from the map that binds it, or from the surrounding mesh that the map uses."""
        around = region.use.bound if name in region.use.bound.names else region.binds
        if not any(axis == name for axis, _ in around.sizes):
            around = self.calls.mesh_of(region.map.applied)
        return frozenset() if around.open else around.sizes_of(name)

    # -- 109

    def manual_constraints(self) -> Iterator[ManualConstraint]:
        """Constraints over axes that a map over a mesh binds."""
        for region in self.regions():
            known = self.ev.knowledge.get(region.use.applied.name)
            over = self.ev.knowledge.get(region.map.applied.name)
            if known is None or known.kind != "constraint" or over is None or over.mesh is None:
                continue
            manual = region.binds.names | self.named_by_map(region.map.applied, over)
            for name in self.specs.named_by(region.use.applied):
                if name in manual and name not in region.use.bound.names:
                    yield ManualConstraint(region.use.site, name, region.map.site, region.map.applied.name)
                    break

    def named_by_map(self, applied: Applied, known: Known) -> frozenset[str]:
        """The axes that the specs of a map name: it binds them all, even if its mesh is not known."""
        if applied.arguments.open or (known.only is not None and self.ev.argument(applied, known.only) is not None):
            return frozenset()
        return frozenset(name for spec in self.specs.specs_of(applied) for name in self.specs.names_in(spec))

    # -- 110

    def axis_orders(self) -> Iterator[AxisOrder]:
        """Ordered collectives over the axes of one dimension of a spec, in a different order."""
        for region in self.regions():
            known = self.ev.knowledge.get(region.use.applied.name)
            if known is None or not known.ordered or known.axes is None:
                continue
            axes = self._sequence(self.ev.argument(region.use.applied, known.axes))
            if axes is None or len(axes) < 2:
                continue
            orders = list(self._specified(region.map, set(axes)))
            if orders and all(order != axes for _, order in orders):
                name = region.use.applied.name.rsplit(".", 1)[-1]
                yield AxisOrder(region.use.site, name, axes, *orders[0])

    def _specified(self, use: MapUse, axes: set[str]) -> Iterator[tuple[Site, tuple[str, ...]]]:
        """The orders in which the specs of a map shard one dimension over these axes."""
        for spec in self.specs.specs_of(use.applied):
            for entry in spec.arguments.positional:
                order = self._sequence(entry)
                if order is not None and set(order) == axes:
                    yield spec.site, order

    def _sequence(self, values: Values | None) -> tuple[str, ...] | None:
        elements = listed(values) if values is not None and constant(values) is None else None
        names = [constant(each) for each in elements or ()]
        found = tuple(n.value for n in names if isinstance(n, Constant) and isinstance(n.value, str))
        return found if found and len(found) == len(names) else None

    # -- 105

    def shadowed(self) -> Iterator[Shadowed]:
        """Maps that bind a name which a map around them binds as well."""
        for use in self.reach.uses:
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or known.kind != "map" or use.frame not in self.reach.trusted:
                continue
            names = self.calls.bound(use.applied).names
            for function in self.calls.functions_in(known, use.applied.arguments):
                if isinstance(function, Applied) and self.ev.kind(function) == "map":
                    for name in sorted(names & self.calls.bound(function).names):
                        yield Shadowed(function.site, name, function.name, use.site, use.applied.name)
            yield from self._shadowed_by_callers(use, names)

    def _shadowed_by_callers(self, use: MapUse, names: frozenset[str]) -> Iterator[Shadowed]:
        pending, seen = [use.frame.ref], {use.frame.ref}
        while pending and names:
            for edge in self.reach.callers.get(pending.pop(), ()):
                for name in sorted(names & edge.target.binds.names):
                    yield Shadowed(use.site, name, use.applied.name, edge.site, edge.target.library)
                if edge.caller.ref not in seen:
                    seen.add(edge.caller.ref)
                    pending.append(edge.caller.ref)
