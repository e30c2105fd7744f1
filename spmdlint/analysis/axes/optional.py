"""Reductions that a helper makes only if it is passed their axis.

A function that takes the axis itself and does not hand it on needs no map to be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.axes.inside import Region
from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Arguments,
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_DEPTH = 6
_NONE = frozenset((Constant(None),))


class LeftOut(Struct, frozen=True):
    """A call that leaves an axis parameter None; ``collective`` is what the helper would have called."""

    site: Site
    parameter: str
    collective: Site
    library: str


class LeftOutInMap(Struct, frozen=True):
    """Such a call inside a map over an axis, over which ``sibling`` reduces."""

    left: LeftOut
    axis: str
    map: Site
    sibling: Site


class OptionalAxes:
    """Examines the calls inside every map whose body reduces over the map's axis elsewhere."""

    def __init__(self, calls: Calls, regions: tuple[Region, ...]) -> None:
        self.ev = calls.ev
        self.calls = calls
        self.regions = regions

    def found(self) -> Iterator[LeftOutInMap]:
        """Each such call once."""
        told: set[Site] = set()
        for region in self.regions:
            axis = self._reduced(region)
            known = self.ev.knowledge.get(region.map.applied.name)
            if axis is None or known is None:
                continue
            for function in self.calls.functions_in(known, region.map.applied.arguments):
                for target in self.calls.targets(function, Arguments(), region.map.frame.depth + 1, arrays=True):
                    for left in self._in(target.frame, _DEPTH, set()):
                        if left.site not in told:
                            told.add(left.site)
                            yield LeftOutInMap(left, axis, region.map.site, region.use.site)

    def not_handed_on(self) -> Iterator[LeftOut]:
        """The calls by functions whose own axis parameter is never used."""
        for ref in self.ev.project.functions():
            formals = [formal.name for formal in self.ev.project.function(ref).formals]
            unused = [name for name in formals if "axis" in name and not self._uses(ref, name)]
            if unused:
                yield from self._leaving(self.ev.free_frame(ref), unused)

    def _leaving(self, frame: Frame, unused: list[str]) -> Iterator[LeftOut]:
        for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            callee = self.ev.callee(frame, call)
            if not isinstance(callee, FunctionValue) or any(argument.star for argument in call.arguments):
                continue
            inner = self.ev.entered_frame(callee, self.ev.arguments(frame, call), frame.depth + 1)
            left = self._left_out(inner) if inner is not None else None
            if inner is None or left is None or self._is_passed(inner, callee, call, left[0]):
                continue
            if left[0] in unused:
                yield LeftOut(Site(frame.ref, number), *left)

    def _uses(self, ref: FunctionRef, name: str) -> bool:
        """Whether a function, or one that is defined in it, reads a name or deletes it (on purpose, then)."""
        functions = self.ev.project.modules[ref.path].summary.functions
        inside = {ref.index}
        for function in functions[ref.index :]:  # those that are defined in a function come after it
            if function.parent in inside:
                inside.add(function.index)
            code = self.ev.code(self.ev.project.ref(ref.path, function.index)) if function.index in inside else None
            if code is not None and (code.loads.get(name) or any(o.name == name for _, o in code.of_kind(s.Delete))):
                return True
        return False

    def _reduced(self, region: Region) -> str | None:
        """The only axis of a map, if the use is a collective over it."""
        known = self.ev.knowledge.get(region.use.applied.name)
        if known is None or known.kind != "collective" or known.axes is None or len(region.binds.names) != 1:
            return None
        (axis,) = region.binds.names
        given = certain(self.ev.argument(region.use.applied, known.axes) or frozenset())
        return axis if given == Constant(axis) else None

    def _in(self, frame: Frame, depth: int, seen: set[Frame]) -> Iterator[LeftOut]:
        if depth == 0 or frame in seen:
            return
        seen.add(frame)
        for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            callee = self.ev.callee(frame, operation)
            if callee is None or any(argument.star for argument in operation.arguments):
                continue
            for target in self.calls.targets(callee, self.ev.arguments(frame, operation), frame.depth + 1):
                left = self._left_out(target.frame) if target.way == "call" else None
                if left is not None and not self._is_passed(target.frame, callee, operation, left[0]):
                    yield LeftOut(Site(frame.ref, number), *left)
                yield from self._in(target.frame, depth - 1, seen)

    def _is_passed(self, frame: Frame, callee: Value, call: s.Call, parameter: str) -> bool:
        """Whether a call passes anything for a parameter, even None: then its author has considered it."""
        bound = isinstance(callee, FunctionValue) and callee.receiver is not None
        return passed_to(self.ev.function(frame), call, parameter, bound=bound) is not None

    def _left_out(self, frame: Frame, *, handed: bool = False) -> tuple[str, Site, str] | None:
        """A parameter that is None by default here, and the collective over it that is therefore not made.

        ``handed``: the None was passed on by a function whose own parameter is None by default.
        """
        function = self.ev.function(frame)
        names = {
            formal.name
            for formal in function.formals
            if (formal.default or handed) and "axis" in formal.name and frame.bound(formal.name) == _NONE
        }
        if not names:
            return None
        return self._in_dead_code(frame, names) or (None if handed else self._handed_on(frame, names))

    def _handed_on(self, frame: Frame, names: set[str]) -> tuple[str, Site, str] | None:
        """The same in a helper that the parameter is passed on to."""
        for _, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            parameter = _given(frame, call, names)
            callee = self.ev.callee(frame, call) if parameter is not None else None
            if parameter is None or not isinstance(callee, FunctionValue):
                continue
            for target in self.calls.targets(callee, self.ev.arguments(frame, call), frame.depth + 1):
                inner = self._left_out(target.frame, handed=True)
                if inner is not None:
                    return parameter, inner[1], inner[2]
        return None

    def _in_dead_code(self, frame: Frame, names: set[str]) -> tuple[str, Site, str] | None:
        """The same, if the collective is in code that cannot run here."""
        function, live = self.ev.function(frame), self.ev.live_blocks(frame)
        for number, operation in enumerate(function.operations):
            if not isinstance(operation, s.Call) or function.block_of[number] in live:
                continue
            parameter = _given(frame, operation, names)
            library = self._collective(frame, operation)
            if parameter is not None and library is not None:
                return parameter, Site(frame.ref, number), library
        for inner in self._defined_in(frame):
            found = self._in_dead_code(inner, names - {formal.name for formal in inner.code.function.formals})
            if found is not None:
                return found
        return None

    def _defined_in(self, frame: Frame) -> Iterator[Frame]:
        """The functions that are defined here, in the frame that they close over."""
        for _, made in frame.code.of_kind(s.MakeFunction):
            function = FunctionValue(FunctionRef(frame.ref.path, made.function), frame)
            inner = self.ev.entered_frame(function, Arguments(), frame.depth + 1, arrays=True)
            if inner is not None:
                yield inner

    def _collective(self, frame: Frame, operation: s.Call) -> str | None:
        for callee in ordered(self.ev.value(frame, operation.function)):
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.kind == "collective":
                return known.name
        return None


def _given(frame: Frame, call: s.Call, names: set[str]) -> str | None:
    """The first of the given names that is passed to a call."""
    given = (frame.code.operations[argument.value] for argument in call.arguments)
    return next((load.name for load in given if isinstance(load, s.Load) and load.name in names), None)
