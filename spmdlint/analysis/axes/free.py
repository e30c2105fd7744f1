"""Free axes: the axes that a function needs bound around it, and the paths on which nothing binds them.

The rule is that of free variables: a collective needs its axes, a call needs what its callee needs, and a map removes
what it binds. What remains is an error at the root of a path from the outside: at a map or a jit that is not itself
inside a map of that name, at module level, or in a function that is clearly host code because it calls maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.arguments import NO_AXES, Axes
from spmdlint.analysis.callgraph.calls import Calls, Target
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.callgraph.wrapped import escapes
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.values import (
    UNKNOWN,
    Applied,
    Arguments,
    Frame,
    FunctionValue,
    Member,
    Site,
    Value,
    certain,
    truth,
)
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

MAX_BELOW = 24
"""The most callees of a function that are searched for maps."""
MAX_NEEDS = 24
"""The most axes needed by one function in one frame that are followed."""


class Need(Struct, frozen=True):
    """An axis that a collective needs, with the calls that lead to it, outermost first.

    ``layer``: it is a layer of a library that communicates. ``derived``: it is needed only where derivatives are taken.
    """

    axis: str
    collective: str
    site: Site
    path: tuple[Site, ...] = ()
    layer: bool = False
    derived: bool = False

    def met_by(self, binds: Axes) -> bool:
        """Whether these axes include it, or may include it."""
        return self.axis in binds.names


class Unbound(Struct, frozen=True):
    """A path on which a needed axis is not bound: from ``root`` (a map, jit or call) along ``need.path``.

    ``mesh`` is the site where the mesh of the root is made. ``more`` is the number of further collectives on paths from
    the same root.
    """

    need: Need
    root: Site
    way: str
    bound: Axes
    more: int = 0
    mesh: Site | None = None


class FreeAxes:
    """Computes needs bottom-up and finds the paths on which they are not met. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach
        self._memo: Memo[tuple[Need, ...]] = Memo((), ())
        self.certainty = reach.certainty
        self._in_use: dict[tuple[int, tuple[str, ...]], bool] = {}

    # -- needs

    def needs(self, frame: Frame) -> tuple[Need, ...]:
        """The axes that a function needs in a frame on every path; those behind an undecided branch are left out."""
        return self._memo.once(frame, lambda: self._needs(frame))

    def _needs(self, frame: Frame) -> tuple[Need, ...]:
        found: dict[tuple[str, Site], Need] = {}
        for number, operation in frame.code.calls_in(sorted(self.certainty.blocks(frame))):
            if len(found) >= MAX_NEEDS:
                break
            for need in self.needs_of_call(frame, number, operation):
                found.setdefault((need.axis, need.site), need)
        return tuple(found.values())

    def needs_of_call(self, frame: Frame, number: int, operation: s.Call) -> Iterator[Need]:
        """The axes that one call needs around it, whichever of its possible callees it runs."""
        ways: list[list[Need]] = []
        for callee in self.ev.in_order(self.ev.value(frame, operation.function)):
            needs = [] if callee is UNKNOWN else self._needs_of(frame, number, operation, callee)
            if not needs:
                return
            ways.append(needs)
        needs = [need for need in ways[0] if all(need.axis in {n.axis for n in way} for way in ways)] if ways else []
        if needs and not (handles(self.ev, frame, number, "NameError") or expects_failure(self.ev, frame, number)):
            yield from needs

    def _needs_of(self, frame: Frame, number: int, operation: s.Call, callee: Value) -> list[Need]:
        site = Site(frame.ref, number)
        arguments = self.ev.arguments(frame, operation)
        needs: list[Need] = []
        needs.extend(self._of_libraries(callee, arguments, site))
        if isinstance(callee, Applied):
            needs.extend(self._layer(callee, arguments, site))
        derives = takes_derivatives(self.calls, callee)
        for target in self.calls.targets(callee, arguments, frame.depth + 1):
            for need in self.left_over(target):
                needs.append(replace(need, path=(site, *need.path), derived=need.derived and not derives))
        for rule in rules_of(self.calls, callee):
            for target in self.calls.targets(rule, Arguments(open=True), frame.depth + 1, arrays=True):
                needs.extend(replace(n, path=(site, *n.path), derived=True) for n in self.left_over(target))
        return [need for need in needs if not need.layer] if self._initializes(callee) else needs

    def _initializes(self, callee: Value) -> bool:
        """Whether a call creates parameters: a library's layers do not communicate meanwhile."""
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, Member) else None
        return known is not None and known.initializes

    def _of_libraries(self, callee: Value, arguments: Arguments, site: Site) -> Iterator[Need]:
        """The axes needed by a collective that is called here: by name, or through a partial or a map of it."""
        for reached in self.calls.libraries(callee, arguments):
            known = self.ev.knowledge.get(reached.name)
            if known is None or known.kind != "collective" or known.axes is None or known.unbound or reached.binds.open:
                continue
            given = self.ev.argument(Applied(reached.name, reached.arguments, site), known.axes)
            axes = self.calls.names(given) if given is not None else NO_AXES
            for name in sorted(axes.names - reached.binds.names) if not axes.open else ():
                yield Need(name, reached.name.rsplit(".", 1)[-1], site)

    def _layer(self, layer: Applied, arguments: Arguments, site: Site) -> Iterator[Need]:
        """The axes that calling a library's layer needs, if it is certain that the layer communicates."""
        known = self.ev.knowledge.get(layer.name)
        if known is None or known.kind != "layer" or known.axes is None:
            return
        given = self.ev.argument(layer, known.axes)
        axes = self.calls.names(given) if given is not None else NO_AXES
        switch = known.when or known.unless
        answer = self._switch(layer, known, switch, arguments) if switch is not None else None
        if not axes.open and answer == (known.when is not None):
            for name in sorted(axes.names):
                yield Need(name, layer.name.rsplit(".", 1)[-1], site, layer=True)

    def _switch(self, layer: Applied, known: Known, switch: str, arguments: Arguments) -> bool | None:
        """The switch of a layer, passed to the call or to the layer itself; None if it is not known."""
        values = arguments.keyword(switch)
        position = known.called.index(switch) if switch in known.called else len(arguments.positional)
        if values is None and position < len(arguments.positional):
            values = arguments.positional[position]
        if values is None and not arguments.open:
            values = self.ev.argument(layer, switch)
        if values is None and known.off and not (arguments.open or layer.arguments.open):
            return None if self._used(layer.site.ref, known.switched_by) else False
        return truth(values) if values is not None else None

    def _used(self, ref: FunctionRef, methods: tuple[str, ...]) -> bool:
        """Whether a file of the same component uses one of these methods of any object."""
        project = self.ev.project
        key = (project.component[ref.path], methods)
        if key not in self._in_use:
            self._in_use[key] = any(
                isinstance(operation, s.Attribute) and operation.name in methods
                for each in (project.functions() if methods else ())
                if project.component[each.path] == key[0]
                for operation in project.function(each).operations
            )
        return self._in_use[key]

    def left_over(self, target: Target) -> Iterator[Need]:
        """The needs of a target that the map on the way to it does not meet."""
        if not target.binds.open:
            for need in self.needs(target.frame):
                if not need.met_by(target.binds):
                    yield need

    # -- paths on which they are not met

    def unbound(self) -> Iterator[Unbound]:
        """Every root under which an axis is not bound, with the first collective that needs it there.

        Each mistake is reported once: a map over the wrong mesh contains fifty collectives, and a helper has twenty
        callers.
        """
        by_root: dict[tuple[str, Site], Unbound] = {}
        for found in (*self._at_maps(), *self._at_calls()):
            # A jit made here may be called where the axis is bound: in the function of a map.
            called = (*self.reach.use_calls.get(found.root, ()), *self.reach.use_handed.get(found.root, ()))
            around = (self.reach.around_of(ref) for ref in (found.root.ref, *(site.ref for site in called)))
            if not any(each.open or found.need.met_by(each) for each in around):
                key = (found.need.axis, found.root)
                held = by_root.get(key)
                if held is None:
                    by_root[key] = found
                elif held.need.site != found.need.site:
                    by_root[key] = replace(held, more=held.more + 1)
        told: set[tuple[str, Site]] = set()
        for found in by_root.values():
            if (found.need.axis, found.need.site) not in told:
                told.add((found.need.axis, found.need.site))
                yield found

    def _runs_for_others(self, use: MapUse) -> bool:
        """Whether a compiled function is called only by functions that may run in any map, or is only passed on."""
        called = self.reach.use_calls.get(use.site, ())
        if called or use.site in self.reach.use_handed:
            return bool(called) and all(map(self._is_for_others, called))
        made = self.ev.project.function(use.site.ref).operations[use.site.number]
        # The name of a decorated function is that of the compiled one; the result of a different call has another name.
        return isinstance(made, s.Call) and made.decorator and any(escapes(self.ev, r) for r in self._compiled(use))

    def _mapped_as_attribute(self, use: MapUse, need: Need) -> bool:
        """Whether a map that binds the axis takes an attribute with the compiled function's name, of any object."""
        if self.reach.use_calls.get(use.site):
            return False
        names = {self.ev.project.function(ref).name for ref in self._compiled(use)}
        mapped = [self._attributes_mapped[name] for name in names & self._attributes_mapped.keys()]
        return any(need.axis in axes for axes in mapped)

    def _compiled(self, use: MapUse) -> list[FunctionRef]:
        known = self.ev.knowledge.get(use.applied.name)
        functions = self.calls.functions_in(known, use.applied.arguments) if known is not None else ()
        return [function.ref for function in functions if isinstance(function, FunctionValue)]

    @cached_property
    def _attributes_mapped(self) -> dict[str, set[str]]:
        """The axes of the maps that are made from attributes, by attribute name: ``pmap(self.step, "batch")``."""
        found: dict[str, set[str]] = {}
        for use in self.reach.applications:
            known = self.ev.knowledge.get(use.applied.name)
            call = use.frame.code.operations[use.site.number] if use.site.ref == use.frame.ref else None
            if known is None or known.kind != "map" or not isinstance(call, s.Call) or not call.arguments:
                continue
            mapped = use.frame.code.operations[call.arguments[0].value]
            if isinstance(mapped, s.Attribute):
                found.setdefault(mapped.name, set()).update(self.calls.bound(use.applied).names)
        return found

    def _is_for_others(self, site: Site) -> bool:
        """Whether a call is in a function that the project passes on but never calls: it may run in any map."""
        called = any(edge.caller.ref != site.ref for edge in self.reach.callers.get(site.ref, ()))
        return not called and self.ev.project.function(site.ref).kind != "module" and escapes(self.ev, site.ref)

    def _at_maps(self) -> Iterator[Unbound]:
        for use in self.reach.uses:
            known = self.ev.knowledge.get(use.applied.name)
            if known is None or not self._runs(known, use) or self._meant_to_fail(use):
                continue
            if use.frame not in self.reach.trusted or use.site in self.reach.inner:
                continue
            binds = self.calls.bound(use.applied) if known.kind == "map" else NO_AXES
            if binds.open:
                continue
            found = list(self._under(use, known, binds))
            # Finding the callers is slow: only do it where it matters.
            if found and known.kind == "jit":
                if self._runs_for_others(use):
                    continue
                found = [each for each in found if not self._mapped_as_attribute(use, each.need)]
            yield from found

    def _under(self, use: MapUse, known: Known, binds: Axes) -> Iterator[Unbound]:
        """The needs of a mapped or compiled function that are not met there."""
        library, mesh = use.applied.name.rsplit(".", 1)[-1], self.calls.mesh_site(use.applied)
        for function in self.calls.functions_in(known, use.applied.arguments):
            for need in self._of_libraries(function, Arguments(open=True), use.site):
                if not need.met_by(binds):
                    yield Unbound(need, use.site, library, binds, mesh=mesh)
            for target in self.calls.targets(function, Arguments(), use.frame.depth + 1, arrays=True):
                for need in self.left_over(target):
                    left_alone = need.derived and not takes_derivatives(self.calls, function)
                    if not need.met_by(binds) and not left_alone:
                        yield Unbound(need, use.site, library, binds | target.binds, mesh=mesh)

    def _runs(self, known: Known, use: MapUse) -> bool:
        """Whether the use is a root: a jit, a map over devices, or a vmap of such a map.

        A vmap of anything else may be meant for the inside of a map outside the project.
        """
        if known.kind == "jit" or known.spans:
            return True
        return known.kind == "map" and any(
            self._spans(function) or (isinstance(function, FunctionValue) and self._holds_map(function, use))
            for function in self.calls.functions_in(known, use.applied.arguments)
        )

    def _spans(self, value: Value) -> bool:
        known = self.ev.knowledge.get(value.name) if isinstance(value, Applied) else None
        return known is not None and known.kind == "map" and known.spans

    def _holds_map(self, function: FunctionValue, use: MapUse) -> bool:
        """Whether a function, or one of its callees, calls a map over devices, as host code does."""
        targets = self.calls.targets(function, Arguments(), use.frame.depth + 1, arrays=True)
        pending, seen = [target.frame for target in targets], set[Frame]()
        while pending and len(seen) < MAX_BELOW:
            frame = pending.pop()
            if frame in seen:
                continue
            seen.add(frame)
            if self._calls_a_map(frame):
                return True
            pending += [edge.target.frame for edge in self.reach.edges.get(frame, ()) if edge.target.way == "call"]
        return False

    def _meant_to_fail(self, use: MapUse) -> bool:
        if expects_failure(self.ev, use.frame, use.site.number):
            return True
        called = self.reach.use_calls.get(use.site, ())
        return bool(called) and all(
            expects_failure(self.ev, self.ev.free_frame(site.ref), site.number)
            or handles(self.ev, self.ev.free_frame(site.ref), site.number, "NameError")
            for site in called
        )

    def _at_calls(self) -> Iterator[Unbound]:
        for frame in self.reach.frames:
            if frame.ref in self.reach.traced or frame not in self.reach.trusted:
                continue
            is_host, mapped_here = self._is_host(frame), self._mapped_here.get(frame, frozenset())
            if not is_host and not mapped_here:
                continue
            for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                for need in self.needs_of_call(frame, number, operation):
                    if (is_host or need.axis in mapped_here) and not need.derived:
                        yield self._at_call(frame, number, operation, need)

    def _at_call(self, frame: Frame, number: int, operation: s.Call, need: Need) -> Unbound:
        """An unmet need of a call on the host, for callees that only the arguments of the call determine."""
        site = Site(frame.ref, number)
        need = replace(need, path=need.path if need.path[:1] != (site,) else need.path[1:])
        callee = self.ev.callee(frame, operation)
        if isinstance(callee, Applied) and self._spans(callee):
            binds = self.calls.bound(callee)
            library = callee.name.rsplit(".", 1)[-1]
            return Unbound(need, callee.site, library, binds, mesh=self.calls.mesh_site(callee))
        return Unbound(need, site, "call", NO_AXES)

    @cached_property
    def _mapped_here(self) -> dict[Frame, frozenset[str]]:
        """The axes of the maps over devices that each frame, or a certain callee of it, makes.

        Such a frame does not run inside a map over the same axis.
        """
        found: dict[Frame, frozenset[str]] = {}
        for use in self.reach.uses:
            if self._spans(use.applied):
                found[use.frame] = found.get(use.frame, frozenset()) | self.calls.bound(use.applied).names
        callers: dict[Frame, list[Frame]] = {}
        for frame, edges in self.reach.edges.items():
            for edge in edges:
                if edge.certain and edge.target.way == "call":
                    callers.setdefault(edge.target.frame, []).append(frame)
        pending = list(found)
        while pending:
            frame = pending.pop()
            for caller in callers.get(frame, ()):
                if not found[frame] <= found.get(caller, frozenset()):
                    found[caller] = found.get(caller, frozenset()) | found[frame]
                    pending.append(caller)
        return found

    def _is_host(self, frame: Frame) -> bool:
        """Whether a frame is host code: module level, or a function that itself calls a map over devices."""
        function = self.ev.function(frame)
        if function.kind == "module":
            return True
        return self._calls_a_map(frame)

    def _calls_a_map(self, frame: Frame) -> bool:
        callees = (self.ev.callee(frame, call) for _, call in frame.code.of_kind(s.Call))
        return any(self._spans(callee) for callee in callees if callee is not None)


_DEPTH = 6


def takes_derivatives(calls: Calls, callee: Value | None, depth: int = _DEPTH) -> bool:
    """Whether a value runs its function under `jax.grad` or the like, perhaps inside of a `jit`."""
    known = calls.knowledge.get(getattr(callee, "name", "")) if callee is not None else None
    if known is None or known.derives or depth == 0:
        return known is not None and known.derives
    if not isinstance(callee, Applied) or not known.function:
        return False
    return any(takes_derivatives(calls, each, depth - 1) for each in calls.functions_in(known, callee.arguments))


def rules_of(calls: Calls, callee: Value) -> Iterator[FunctionValue]:
    """The functions of the project that a function with a derivative of its own is given: ``f.defvjp(fwd, bwd)``.

    They are looked for in its file.
    """
    known = calls.knowledge.get(callee.name) if isinstance(callee, Applied) else None
    if known is None or known.derived_by is None or not isinstance(callee, Applied):
        return
    names, path = frozenset((known.derived_by,)), callee.site.ref.path
    for function in calls.ev.project.modules[path].summary.functions:
        frame = calls.ev.free_frame(FunctionRef(path, function.index))
        for call in frame.code.calls_named(names).values():
            method = frame.code.operations[call.function]
            if not isinstance(method, s.Attribute) or certain(calls.ev.value(frame, method.base)) != callee:
                continue
            given = (certain(calls.ev.value(frame, argument.value)) for argument in call.arguments)
            yield from (each for each in given if isinstance(each, FunctionValue))
