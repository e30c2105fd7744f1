"""Permutations and groups made from what one process has, although the devices of all processes take part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.axes.regions import Regions
from spmdlint.analysis.callgraph.calls import Calls, says_who
from spmdlint.analysis.callgraph.participants import on_local_devices
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure
from spmdlint.analysis.evaluation.several import counting
from spmdlint.analysis.evaluation.values import (
    Applied,
    Constant,
    External,
    Frame,
    Site,
    Value,
    Values,
    certain,
    constant,
)
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.facets import Facets
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_KINDS = ("identity", "group", "clock", "entropy", "host")
# They give a count, or a list of numbers, made from nothing but the counts in their arguments.
_COUNTING = frozenset(f"builtins.{name}" for name in "len range list tuple zip enumerate reversed min max int".split())
_COUNTING_TOO = frozenset(f"numpy.{name}" for name in "arange array asarray split array_split".split())
_LESSENING = ("//", "%")
"""Operators by which a count becomes no larger, whatever is on the right."""
_RESHAPING = frozenset("reshape tolist astype ravel transpose".split())
_DEPTH = 6


class OwnPart(Struct, frozen=True):
    """A permutation or groups for one process: different on each (``varies``), or for as many devices as it has.

    ``axis``: it is for all devices instead, although the collective runs along this one of several axes of a mesh.
    """

    site: Site
    what: Literal["permutation", "groups"]
    varies: bool
    reason: Reason
    axis: str | None = None


class CountedBy(Property):
    """The value is made only from the result of some functions that count devices, and from constants."""

    def __init__(self, counters: frozenset[str], text: str) -> None:
        self.counters = counters
        self.text = text

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        if isinstance(operation, s.Binary):
            if operation.operator in _LESSENING:
                return origins.of(frame, operation.left)
            return self._only(origins, frame, (operation.left, operation.right))
        if isinstance(operation, s.Collected):
            loops = [origins.ev.function(frame).operations[loop] for loop in operation.loops]
            iterables = [loop.iterable for loop in loops if isinstance(loop, s.Next)]
            found = self._only(origins, frame, (*iterables, operation.element)) or origins.any_of(frame, iterables)
            return origins.step(frame, number, "this is made for that many devices", found) if found else None
        if isinstance(operation, s.IfExp):
            arms = (operation.body, operation.orelse)
            given = [arm for arm in arms if constant(origins.ev.value(frame, arm)) != Constant(None)]
            return self._only(origins, frame, tuple(given))
        if isinstance(operation, (s.Item, s.Subscript)):
            element = of_element(origins, frame, operation)
            if element != CONTINUE:
                return element
            return origins.of(frame, operation.value if isinstance(operation, s.Item) else operation.base)
        if isinstance(operation, (s.Load, s.Store, s.Attribute, s.Parameter, s.Import)):
            return CONTINUE
        return None

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        callee = origins.ev.callee(frame, operation)
        if not isinstance(callee, External):
            method = origins.ev.function(frame).operations[operation.function]
            reshapes = isinstance(method, s.Attribute) and method.name in _RESHAPING
            return origins.of(frame, method.base) if reshapes and isinstance(method, s.Attribute) else CONTINUE
        if callee.name in self.counters:
            return Reason(Site(frame.ref, number), f"{callee.name}() covers {self.text}", "own")
        if callee.name not in _COUNTING | _COUNTING_TOO or any(argument.star for argument in operation.arguments):
            return None
        given = tuple(argument.value for argument in operation.arguments)
        if callee.name == "builtins.range" and given:
            return origins.of(frame, given[0] if len(given) == 1 else given[1])  # up to this end, whatever the step
        return self._only(origins, frame, given)

    @staticmethod
    def _only(origins: Origins, frame: Frame, numbers: tuple[int, ...]) -> Reason | None:
        """The first reason of several values, if each of them has one or is a constant."""
        first: Reason | None = None
        for number in numbers:
            found = origins.of(frame, number)
            if found is None and constant(origins.ev.value(frame, number)) is None:
                return None
            first = first or found
        return first


class OwnParts:
    """Checks the permutations and groups of all traced collectives. One per run."""

    def __init__(self, calls: Calls, reach: Reach, facets: Facets, regions: Regions, multi: MultiProcess) -> None:
        self.ev: Evaluator = calls.ev
        self.reach = reach
        self.facets = facets
        self.regions = regions
        self.multi = multi
        self._own = Origins(calls.ev, calls, reach, CountedBy(counting("local"), "this process's devices only"))
        self._all = Origins(calls.ev, calls, reach, CountedBy(counting("device"), "the devices of all axes"))

    def found(self) -> Iterator[OwnPart]:
        """Every permutation or list of groups that is made for one process."""
        for ref in sorted(self.reach.traced, key=lambda r: (r.path, r.index)):
            frame = self.ev.free_frame(ref)
            for number, call in self.ev.code(ref).of_kind(s.Call):
                given = [value for _, value in says_who(self.ev, frame, call)]
                if given and not expects_failure(self.ev, frame, number):
                    inside = self._surely_run(frame, number, given)
                    if inside is not None:
                        yield from self._of_call(inside, number, call)
        yield from self._of_layers()

    def _surely_run(self, free: Frame, number: int, given: list[int]) -> Frame | None:
        """A frame in which a function certainly makes a call: with unknown arguments, or else as a caller enters it.

        It may test first whether there are any groups at all.
        """
        block = free.code.function.block_of[number]
        ways = (free, *self._called.get(free.ref, ()))
        asked = free if all(_asks_for(free, block, each) for each in given) else None
        return next((frame for frame in ways if block in self.reach.certainty.blocks(frame)), asked)

    @cached_property
    def _called(self) -> dict[FunctionRef, list[Frame]]:
        """The frames in which each function is called."""
        found: dict[FunctionRef, list[Frame]] = {}
        for frame in self.reach.frames:
            found.setdefault(frame.ref, []).append(frame)
        return found

    def _of_layers(self) -> Iterator[OwnPart]:
        """Groups in layers of models, which a library calls: any map may bind their axis, so all maps have to agree."""
        names = {known.groups for known in self.ev.knowledge.functions.values() if known.groups is not None}
        for ref in self.ev.project.functions():
            for number, call in self.ev.code(ref).of_kind(s.Call) if ref not in self.reach.traced else ():
                given = next((each for each in call.arguments if each.keyword in names), None)
                frame = self.ev.free_frame(ref)
                if given is None or not self._takes_groups(frame, call, given.keyword):
                    continue
                own = self._own.of(frame, given.value)
                if own is not None and self._all_span(ref) and not expects_failure(self.ev, frame, number):
                    yield OwnPart(Site(ref, number), "groups", varies=False, reason=own)

    def _takes_groups(self, frame: Frame, call: s.Call, parameter: str | None) -> bool:
        """Whether a call is of a collective or a layer, or of a partial of one, that takes groups in this parameter."""
        callee = self.ev.callee(frame, call)
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is not None and known.kind == "currying" and call.arguments:
            callee = certain(self.ev.value(frame, call.arguments[0].value))
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        return known is not None and known.groups == parameter

    def _all_span(self, ref: FunctionRef) -> bool:
        """Whether all maps in the files connected with this one bind the axis of all devices there are."""
        component = self.ev.project.component
        maps = []
        for use in self.reach.uses:
            known = self.ev.knowledge.get(use.applied.name)
            if known is not None and known.kind == "map" and component[use.site.ref.path] == component[ref.path]:
                maps.append(use)
        return bool(maps) and all(map(self._spans_all, maps))

    def _of_call(self, frame: Frame, number: int, call: s.Call) -> Iterator[OwnPart]:
        for what, given in says_who(self.ev, frame, call):
            varying = self.facets.content.of(frame, given)
            if varying is not None and varying.kind in _KINDS:
                yield OwnPart(Site(frame.ref, number), what, varies=True, reason=varying)
                continue
            own = self._own.of(frame, given)
            if own is not None and self._among_all(Site(frame.ref, number), own):
                yield OwnPart(Site(frame.ref, number), what, varies=False, reason=own)
            everything = self._all.of(frame, given) if own is None else None
            axis = self._one_of_several(Site(frame.ref, number)) if everything is not None else None
            if everything is not None and axis is not None:
                yield OwnPart(Site(frame.ref, number), what, varies=False, reason=everything, axis=axis)

    def _one_of_several(self, site: Site) -> str | None:
        """The axis of a collective, if every map around it is over a mesh that certainly has further axes."""
        found: set[str] = set()
        for region in self.regions.regions():
            if region.use.site != site:
                continue
            known = self.ev.knowledge.get(region.use.applied.name)
            given = self.ev.argument(region.use.applied, known.axes or "") if known is not None else None
            axes = self.regions.calls.names(given) if given is not None else None
            if axes is None or axes.open or len(axes.names) != 1 or not self._others(region.map, axes.names):
                return None
            found |= axes.names
        return found.pop() if len(found) == 1 else None

    def _others(self, use: MapUse, names: frozenset[str]) -> bool:
        """Whether a mesh has another axis than these, as it or the specs say, which is not known to have one device."""
        mesh = self.regions.calls.mesh_of(use.applied)
        known = self.ev.knowledge.get(use.applied.name)
        named = self.regions.named_by_map(use.applied, known) if known is not None and known.mesh is not None else ()
        others = {*mesh.names, *named} - names
        return any(mesh.sizes_of(other) != frozenset((1,)) for other in others)

    def _among_all(self, site: Site, own: Reason) -> bool:
        """Whether a collective certainly runs over the devices of all processes, in a program that says it has several.

        It need not say so if a function does the counting; a script that counts at its top level is a single process.
        """
        anywhere = own.source.site.ref.index != 0
        around = [region for region in self.regions.regions() if region.use.site == site]
        if not around:  # it may not run at all, if there are no groups
            return anywhere and self._all_span(site.ref)
        return all(
            self._spans_all(region.map) and (anywhere or self.multi.runs_several(region.map.site.ref.path))
            for region in around
        )

    def _spans_all(self, use: MapUse) -> bool:
        """Whether a map binds only one axis, that of all devices there are."""
        known = self.ev.knowledge.get(use.applied.name)
        if known is None or not known.spans or use.applied.arguments.open:
            return False
        if known.axes is not None:
            return not any(use.applied.arguments.keyword(name) for name in ("devices", "backend"))
        given = self.ev.argument(use.applied, known.mesh) if known.mesh is not None else None
        mesh = certain(given) if given is not None else None
        if not isinstance(mesh, Applied) or len(self.regions.calls.of_mesh(frozenset((mesh,))).names) != 1:
            return False
        inside = [*mesh.arguments.positional, *(values for _, values in mesh.arguments.keywords)]
        return not on_local_devices(mesh) and any(_names_all(values, _DEPTH) for values in inside)


def _asks_for(frame: Frame, block: int, given: int) -> bool:
    """Whether every branch before a block asks whether a value is None."""
    code = frame.code
    for number in code.flow.dominators_of(block):
        test = code.function.blocks[number].test
        if test is None or number == block:
            continue
        asked = code.operations[test]
        operands = asked.operands if isinstance(asked, s.Compare) and asked.operators == ("is not",) else (test,)
        if code.root_of(operands[0]) != code.root_of(given):
            return False
    return True


def _names_all(values: Values, depth: int) -> bool:
    """Whether a value counts or lists all devices: `jax.devices()`, an array of them, their number in a tuple."""
    value = certain(values)
    return value is not None and depth > 0 and _is_all(value, depth)


def _is_all(value: Value, depth: int) -> bool:
    if isinstance(value, Applied):
        return value.name in counting("device") or any(
            _names_all(given, depth - 1) for given in value.arguments.positional
        )
    inner = getattr(value, "elements", ())
    function = getattr(value, "function", None)
    return any(_names_all(each, depth - 1) for each in inner) or (function is not None and _is_all(function, depth - 1))
