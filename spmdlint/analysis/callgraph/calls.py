"""What runs when a value is called: the project's functions, and the axes bound around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.arguments import ANY_AXES, NO_AXES, Axes, device_count
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.standard import leaf_function, listed
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    Arguments,
    Called,
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Site,
    Value,
    Values,
    certain,
    constant,
)
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known
from spmdlint.program import summary as s
from spmdlint.program.summary import Call

Way = Literal["call", "transform", "apply", "jit", "map"]


class Target(Struct, frozen=True):
    """A frame that a call runs, how it is reached, and the axes bound on the way."""

    frame: Frame
    way: Way
    binds: Axes = NO_AXES
    library: str = ""


PASSING = ("call", "transform")  # the ways on which a function gets what the call passes, as it is
MAX_LEAVES = 24
"""The most leaves of a pytree with which a function is followed individually."""
MAX_WRAPPED = 6
"""The most nested wrappers of a library function that are seen through."""


class Reached(Struct, frozen=True):
    """A library function that a call runs, its arguments, and the axes bound on the way."""

    name: str
    arguments: Arguments
    binds: Axes = NO_AXES


class Calls:
    """Resolves calls. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self.knowledge = evaluator.knowledge
        self.contexts = Contexts(self)

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
        elif isinstance(callee, Member):
            yield from self._forwarded(callee, arguments, depth)
        elif isinstance(callee, External):
            yield from self._apply(callee.name, arguments, depth)
        elif isinstance(callee, Applied):
            yield from self._applied(callee, arguments, depth, arrays=arrays)

    def _forwarded(self, callee: Member, arguments: Arguments, depth: int) -> Iterator[Target]:
        """The targets of a library method that runs methods of its object, or the functions it was made from."""
        known = self.knowledge.get(callee.name)
        if known is None or known.kind != "forward" or arguments.keyword("method") is not None:
            return
        given = arguments.positional
        if len(given) < len(known.parameters):
            return
        keywords = tuple((name, values) for name, values in arguments.keywords if name not in known.drops)
        for function in self._behind(callee.base, known):
            put = self._inserted(function, known)
            rest = given[len(known.parameters) :]
            rest = rest if put is None else (*rest[:put], ANYTHING, *rest[put:])
            yield from self.targets(function, Arguments(rest, keywords, arguments.open), depth)

    def _behind(self, base: Value, known: Known) -> Iterator[Value]:
        """The values that a forwarding method runs."""
        made_from: list[Value] = [base]
        if isinstance(base, Applied):
            maker = self.knowledge.get(base.name)
            every = [value for values in base.arguments.positional if (value := certain(values)) is not None]
            named = maker is not None and bool(maker.function)
            made_from = list(self.functions_in(maker, base.arguments)) if named and maker is not None else every
        elif not isinstance(base, Instance):
            return
        for value in made_from:
            inner = value if known.method is None else self._method(value, known.method)
            if isinstance(inner, (FunctionValue, Member, Applied)):
                yield inner

    def _method(self, value: Value, name: str) -> Value | None:
        if isinstance(value, Instance):
            return certain(self.ev.objects.attribute(value, name))
        if isinstance(value, Applied):
            return certain(self.ev.attribute(value, name, self.ev.free_frame(value.site.ref)))
        return None

    def _inserted(self, function: Value, known: Known) -> int | None:
        """The position of a parameter of the function that is run which the forwarding method does not take."""
        inner = self.knowledge.get(function.name) if isinstance(function, Member) else None
        if known.inserts is None or inner is None or known.inserts not in inner.parameters:
            return None
        return inner.parameters.index(known.inserts)

    def _apply(self, name: str, arguments: Arguments, depth: int) -> Iterator[Target]:
        """The targets of a library function that calls the functions it is passed at once."""
        known = self.knowledge.get(name)
        if known is None or known.kind != "apply":
            return
        given = self._leaves_of(known, arguments)
        for function in self.may_run(known, arguments):
            for each in given:
                for target in self.targets(function, each, depth, arrays=True):
                    yield replace(target, way=_outermost("apply", target.way), library=target.library or name)

    def _leaves_of(self, known: Known, arguments: Arguments) -> list[Arguments]:
        """The arguments of a function that runs on each leaf of a pytree: the leaves, if the pytree is written out."""
        if known.leaves is not None:
            functions = [leaf_function(self.ev, tree) for tree in arguments.positional[1:]]
            if any(functions):
                return [Arguments(tuple(each or ANYTHING for each in functions))]
        position = known.positional.index(known.leaves) if known.leaves is not None else len(arguments.positional)
        tree = arguments.positional[position] if position < len(arguments.positional) else None
        leaves = self._leaves(tree) if tree is not None else None
        if not leaves or len(leaves) > MAX_LEAVES:
            return [Arguments()]
        several = len(arguments.positional) > len(known.positional)
        return [Arguments((leaf,), open=several) for leaf in leaves]

    def _leaves(self, values: Values) -> list[Values] | None:
        value = certain(values)
        if isinstance(value, Collection):
            inner = [self._leaves(each) for each in value.elements]
            is_open = value.open or value.kind == "set"
        elif isinstance(value, DictionaryValue):
            inner = [self._leaves(each) for _, each in value.items]
            is_open = value.open
        else:
            return [values] if isinstance(value, Applied) else None
        known = [leaf for leaves in inner for leaf in leaves or ()]
        return None if is_open or any(leaves is None for leaves in inner) else known

    def _applied(self, callee: Applied, arguments: Arguments, depth: int, *, arrays: bool) -> Iterator[Target]:
        """The targets of calling what a library made from a function: a map, a transformation, a partial."""
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
            for function in self.may_run(known, callee.arguments):
                yield from self.targets(function, merged, depth, arrays=arrays)
        elif known.kind in ("jit", "map", "transform"):
            binds = self.bound(callee) if known.kind == "map" else NO_AXES
            for function in self.may_run(known, callee.arguments):
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
        """The functions that are passed to a library function, if there is no doubt about them."""
        for value in map(certain, self._passed(known, arguments)):
            if isinstance(value, Collection):
                yield from (inner for inner in map(certain, value.elements) if inner is not None)
            elif value is not None:
                yield value

    def may_run(self, known: Known, arguments: Arguments) -> Iterator[Value]:
        """The functions that a library function may be passed: a default beside what is unknown, any of several."""
        yield from self.functions_in(known, arguments)
        for values in self._passed(known, arguments):
            if certain(values) is None:
                yield from (value for value in self.ev.in_order(values) if isinstance(value, FunctionValue))

    @staticmethod
    def _passed(known: Known, arguments: Arguments) -> Iterator[Values]:
        for parameter in known.function:
            values = arguments.keyword(parameter)
            if values is None and parameter in known.positional:
                position = known.positional.index(parameter)
                values = arguments.positional[position] if position < len(arguments.positional) else None
            if values is not None:
                yield values

    def run_by(self, callees: Iterable[Value], frame: Frame, operation: Call) -> Iterator[Value]:
        """The functions that a call passes to a library function that runs them unchanged, for each leaf or element."""
        for callee in callees:
            known = self.knowledge.get(callee.name) if isinstance(callee, External) else None
            if known is not None and known.runs:
                yield from self.functions_in(known, self.ev.arguments(frame, operation))

    def keeps_results(self, function: Value, depth: int = MAX_WRAPPED) -> bool:
        """Whether a call returns what the project function behind it returns, unchanged by any transformation."""
        if not isinstance(function, Applied):
            return isinstance(function, (FunctionValue, Instance))
        known = self.knowledge.get(function.name)
        if depth == 0 or known is None or known.refs or not (known.keeps or known.kind in ("currying", "jit", "map")):
            return False
        return all(self.keeps_results(inner, depth - 1) for inner in self.functions_in(known, function.arguments))

    def libraries(self, callee: Value, arguments: Arguments, depth: int = MAX_WRAPPED) -> Iterator[Reached]:
        """The library functions that run when a value is called: the value itself, or those behind its wrappers."""
        if depth == 0:
            return
        known = self.knowledge.get(callee.name) if isinstance(callee, (External, Applied)) else None
        if isinstance(callee, External):
            if known is None or known.kind != "apply":
                yield Reached(callee.name, arguments)
                return
            for function in self.functions_in(known, arguments):
                if isinstance(function, (External, Applied)):
                    yield from self.libraries(function, Arguments(open=True), depth - 1)
        elif isinstance(callee, Applied) and known is not None:
            binds = self.bound(callee) if known.kind == "map" else NO_AXES
            if known.kind == "currying":
                arguments = Arguments(
                    (*callee.arguments.positional[1:], *arguments.positional),
                    (*callee.arguments.keywords, *arguments.keywords),
                    callee.arguments.open or arguments.open,
                )
            elif known.kind not in ("jit", "map", "transform"):
                return
            for function in self.functions_in(known, callee.arguments):
                if isinstance(function, (External, Applied)):
                    for inner in self.libraries(function, arguments, depth - 1):
                        yield replace(inner, binds=inner.binds | binds)

    # -- axes

    def bound(self, applied: Applied) -> Axes:
        """The axes that a map binds inside its function."""
        known = self.knowledge.get(applied.name)
        if known is None or known.opaque:
            return ANY_AXES
        if known.axes is not None:
            given = self.ev.argument(applied, known.axes)
            if given is None:
                holder = self.ev.argument(applied, known.mesh) if known.mesh is not None else None
                return self.of_mesh(holder) if holder is not None else ANY_AXES if applied.arguments.open else NO_AXES
            axes = self.names(given)
            return replace(axes, sizes=frozenset((name, self._own_size(applied)) for name in axes.names))
        if known.mesh is None:
            return ANY_AXES
        mesh = self.mesh_of(applied)
        only = self.ev.argument(applied, known.only) if known.only is not None else None
        if only is None or constant(only) == Constant(None):
            return mesh
        narrowed = self.names(only)
        if narrowed.open or not narrowed.names:
            # An empty set of names stands for all names of the mesh.
            return ANY_AXES if narrowed.open else mesh
        if mesh.open:
            return narrowed
        # Names that the mesh lacks are reported separately.
        return mesh & narrowed.names if narrowed.names <= mesh.names else ANY_AXES

    def _own_size(self, applied: Applied) -> int | None:
        given = constant(self.ev.argument(applied, "axis_size") or ANYTHING)
        if given is not None and isinstance(given.value, int):
            return given.value
        return device_count(self.ev, applied, "devices")

    def mesh_of(self, applied: Applied) -> Axes:
        """The axes of the mesh of a map or sharding: the mesh that it is passed, or the one of the context."""
        known = self.knowledge.get(applied.name)
        given = self.ev.argument(applied, known.mesh) if known is not None and known.mesh is not None else None
        if given is not None and constant(given) != Constant(None):
            return self.of_mesh(given)
        if applied.arguments.open or known is None or not known.ambient:
            return ANY_AXES
        return self.contexts.axes(applied.site.ref.path)

    def mesh_site(self, applied: Applied) -> Site | None:
        """The site where the mesh that is passed to a map is made."""
        known = self.knowledge.get(applied.name)
        given = self.ev.argument(applied, known.mesh) if known is not None and known.mesh is not None else None
        mesh = certain(given) if given is not None else None
        return mesh.site if isinstance(mesh, Applied) else None

    def of_mesh(self, values: Values) -> Axes:
        """The axes of a mesh."""
        mesh = certain(values)
        if isinstance(mesh, Applied):
            known = self.knowledge.get(mesh.name)
            if known is not None and known.kind == "mesh" and known.axes is not None:
                given = self.ev.argument(mesh, known.axes)
                if given is None:
                    return ANY_AXES
                axes = self.names(given)
                return replace(axes, sizes=self._sizes(mesh, known, given, axes))
        return ANY_AXES

    def _sizes(self, mesh: Applied, known: Known, names: Values, axes: Axes) -> frozenset[tuple[str, int | None]]:
        """The sizes of a mesh's axes, as far as they are written out."""
        unknown = frozenset((name, None) for name in axes.names)
        spelled = listed(names)
        given = self.ev.argument(mesh, known.sizes) if known.sizes is not None else None
        sizes = self._shape(given) if given is not None else None
        count = device_count(self.ev, mesh, known.sizes) if sizes is None and known.sizes is not None else None
        sizes = [frozenset((Constant(count),))] if count is not None else sizes
        if spelled is None or sizes is None or len(spelled) != len(sizes):
            return unknown
        found: set[tuple[str, int | None]] = set()
        for name, size in zip(map(constant, spelled), map(constant, sizes), strict=True):
            if name is None or not isinstance(name.value, str):
                return unknown
            found.add((name.value, size.value if size is not None and isinstance(size.value, int) else None))
        return frozenset(found)

    def _shape(self, values: Values) -> list[Values] | None:
        """The lengths of the dimensions, from a tuple of them, or from an array of devices that is given a shape."""
        value = certain(values)
        if isinstance(value, Applied):
            known = self.knowledge.get(value.name)
            given = self.ev.argument(value, known.sizes) if known is not None and known.sizes is not None else None
            return self._shape(given) if given is not None else None
        if isinstance(value, Called) and isinstance(value.function, Member) and value.function.name == "reshape":
            call = self.ev.project.function(value.site.ref).operations[value.site.number]
            assert isinstance(call, Call)
            shape = self.ev.arguments(self.ev.free_frame(value.site.ref), call).positional
            return listed(shape[0]) if len(shape) == 1 and listed(shape[0]) is not None else list(shape)
        return listed(values)

    def names(self, values: Values) -> Axes:
        """The axis names in a value: a string or a tuple of strings; None and numbers (dimensions) are not names."""
        found: set[str] = set()
        for value in values:
            if isinstance(value, Constant) and (value.value is None or isinstance(value.value, (str, int))):
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


# These build a collection from the axis names that they are passed.
_COLLECTORS = names("collections")
_STRENGTH: dict[Way, int] = {"call": 0, "transform": 1, "apply": 2, "jit": 3, "map": 4}


def _outermost(outer: Way, inner: Way) -> Way:
    return outer if _STRENGTH[outer] >= _STRENGTH[inner] else inner


def says_who(evaluator: Evaluator, frame: Frame, call: Call) -> Iterator[int]:
    """The arguments of a collective that say which devices take part, and how."""
    callee = evaluator.callee(frame, call)
    known = evaluator.knowledge.get(callee.name) if isinstance(callee, External) else None
    for parameter in (known.permutation, known.groups) if known is not None else ():
        given = passed(call, parameter, known.positional) if known is not None and parameter is not None else None
        if given is not None:
            yield given


class Contexts:
    """Answers per component: a mesh that is set in one file may be in effect in any other file of the component."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.ev = calls.ev
        self._known: dict[int, Axes] = {}

    def axes(self, path: Path) -> Axes:
        """The axes of all meshes that may be set around code of a file; any axes if one of the meshes is unknown."""
        component = self.ev.project.component[path]
        if component not in self._known:
            self._known[component] = ANY_AXES
            self._known[component] = self._find(component)
        return self._known[component]

    def _find(self, component: int) -> Axes:
        found, is_set = NO_AXES, False
        for frame in self._frames(component):
            for number, operation in enumerate(self.ev.function(frame).operations):
                if isinstance(operation, s.Call):
                    axes, sets = self._of_call(frame, number, operation)
                    found, is_set = found | axes, is_set or sets
                elif isinstance(operation, s.Enter):
                    axes = self._of_block(frame, operation)
                    found, is_set = found | axes, is_set or bool(axes.names)
                if found.open:
                    return ANY_AXES
        return found if is_set else ANY_AXES

    def _frames(self, component: int) -> Iterator[Frame]:
        for ref in self.ev.project.functions():
            if self.ev.project.component[ref.path] == component:
                yield self.ev.free_frame(ref)

    def _of_call(self, frame: Frame, number: int, operation: s.Call) -> tuple[Axes, bool]:
        """The axes that a call makes known, and whether it sets a mesh."""
        callee = self.ev.callee(frame, operation)
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if known is None or known.kind not in ("mesh", "context", "map"):
            return NO_AXES, False
        assert isinstance(callee, External)
        applied = Applied(callee.name, self.ev.arguments(frame, operation), Site(frame.ref, number))
        if known.kind == "mesh":
            return self.calls.of_mesh(frozenset((applied,))), False
        given = self.ev.argument(applied, known.mesh) if known.mesh is not None else None
        if given is None or constant(given) == Constant(None):
            return NO_AXES, False
        return self.calls.of_mesh(given), known.kind == "context"

    def _of_block(self, frame: Frame, operation: s.Enter) -> Axes:
        """The axes of the mesh that `with mesh:` sets, the old way; an unknown context manager may be a mesh."""
        manager = certain(self.ev.value(frame, operation.manager))
        source = self.ev.function(frame).operations[operation.manager]
        if isinstance(manager, Applied):
            return self.calls.of_mesh(frozenset((manager,))) if self.ev.kind(manager) == "mesh" else NO_AXES
        return ANY_AXES if manager is None and not isinstance(source, s.Call) else NO_AXES
