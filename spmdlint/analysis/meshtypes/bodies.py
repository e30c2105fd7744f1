"""Types every mapped body of a program, and reports where the types contradict what the map claims."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.callgraph.reach import MapUse, Reach
from spmdlint.analysis.callgraph.wrapped import Wrapped, Wrappers
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.values import (
    NOTHING,
    Applied,
    Arguments,
    Collection,
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
    constant,
)
from spmdlint.analysis.meshtypes import application, transforms
from spmdlint.analysis.meshtypes.dimensions import misplaced_under, overlaid_under
from spmdlint.analysis.meshtypes.localsteps import averaged_later
from spmdlint.analysis.meshtypes.passed import Passed
from spmdlint.analysis.meshtypes.primitives import Event, Hazard, side_by_side
from spmdlint.analysis.meshtypes.rows import Rows, carried, copied_first, has_own_sibling, made_apart, replicated
from spmdlint.analysis.meshtypes.scalars import dimensions_of_none
from spmdlint.analysis.meshtypes.scopes import Region, Scope
from spmdlint.analysis.meshtypes.specs import Claim, claims, claims_of_axes, prefix, rows_type, spec_type
from spmdlint.analysis.meshtypes.states import (
    ALIKE,
    ALL_ALIKE,
    DIFFERENT,
    UNKNOWN,
    Leaf,
    Mark,
    Type,
    changed,
    leaves_of,
)
from spmdlint.analysis.meshtypes.symbols import bound_axes, is_symbol, may_be_one
from spmdlint.analysis.meshtypes.typer import Typer
from spmdlint.knowledge.files import names
from spmdlint.knowledge.load import Known
from spmdlint.knowledge.typing import Typing

_REDUCTIONS = names("sums")
_INDEX = ("jax.lax.axis_index",)
_CHECKS = ("check_vma", "check_rep")
# What programs call the arrays of a model, of which devices hold copies, or for some of them parts.
_MODELS = frozenset(("params", "parameters", "variables", "weights", "model"))


class Unreduced(Struct, frozen=True):
    """An output that varies along an axis, although its map claims it does not, or it is applied to parameters.

    ``mixed``: it varies on only one path through the body. ``share``: it is a gradient or a partial sum, which a
    reduction makes right; ``gradient`` says where the gradient was taken. ``spec`` is None for a map that claims
    nothing, and the map itself if its `out_axes` claim it. ``ambient``: the mesh is the one of the context, whose axes
    are unknown. ``returned``: what the body returns, if it returns at a single site. ``gathered``: it is the same on
    all devices, but JAX types it as varying, because it comes from the ``all_gather`` at ``origin``. ``sibling``: where
    the body reduces another gradient over the axis, which a `vmap` in it binds. ``reduced_loss``: where the loss, and
    not the gradient, is reduced over the axis. ``wrapped`` is the body if it was handed to the code that maps it.
    """

    map: Site
    library: str
    axis: str
    checked: bool
    mixed: bool
    share: bool
    gradient: Mark | None
    origin: Site | None
    spec: Site | None
    body: str
    ambient: bool = False
    returned: Site | None = None
    gathered: bool = False
    sibling: Site | None = None
    reduced_loss: Site | None = None
    wrapped: Wrapped | None = None


class Share(Struct, frozen=True):
    """One device's shares that are not reduced: where the first is made, and where others of the same map are."""

    site: Site
    first: Unreduced
    others: tuple[Site, ...] = ()


class Met(Struct, frozen=True):
    """A hazard at an operation of a body, and the map whose body it is; ``by_hand`` for a map over rows.

    ``path``: the calls in the body that lead to where it began. ``wrapped`` is the body if it was handed to the code
    that maps it, for a hazard of an output.
    """

    event: Event
    path: tuple[Site, ...]
    map: Site
    library: str
    by_hand: bool
    wrapped: Wrapped | None = None


UNNAMED = ""
"""The axis of a map that gives it no name."""


class Mapped(Struct, frozen=True):
    """A map over rows, with the type of what its body returns."""

    use: MapUse
    axis: str
    rows: Rows
    result: Type


class Bodies:
    """Types the bodies of all maps over devices. One per run."""

    def __init__(self, evaluator: Evaluator, calls: Calls, reach: Reach, table: Typing) -> None:
        self.ev = evaluator
        self.calls = calls
        self.reach = reach
        self.table = table
        self._wrappers = Wrappers(evaluator, reach)
        self._unreduced: dict[Unreduced, None] | None = None
        self._met: dict[Met, None] = {}
        self._mapped: dict[Applied, Mapped] = {}

    def unreduced(self) -> list[Unreduced]:
        """Outputs that lack a reduction, under the axis name if one of the paths to the map determines it."""
        found = list(self._run())
        named = {(each.map, each.spec) for each in found if not is_symbol(each.axis)}
        return [each for each in found if not is_symbol(each.axis) or (each.map, each.spec) not in named]

    def shares(self) -> Iterator[Share]:
        """Unreduced gradients, sums and means of one device's share that leave an unchecked body as global ones.

        Each gradient is reported by itself, because it is applied; the sums and means of one map together.
        """
        alike: dict[tuple[Site, str], dict[Site, Unreduced]] = {}
        for found in self.unreduced():
            if not found.checked and found.share:
                gradient = found.gradient.site if found.gradient is not None else None
                site = gradient or found.origin or found.map
                alike.setdefault((gradient or found.map, found.axis), {}).setdefault(site, found)
        told: set[tuple[Site, str]] = set()
        for places in alike.values():
            (site, first), *rest = places.items()
            if (site, first.axis) not in told:
                told.update((each, first.axis) for each in places)
                yield Share(site, first, tuple(each for each, _ in rest))

    def met(self) -> list[Met]:
        """Hazards at operations."""
        self._run()
        named = {(met.map, met.event.mark.site) for met in self._met if not is_symbol(met.event.mark.axis)}
        return [
            met
            for met in self._met
            if (not is_symbol(met.event.mark.axis) or (met.map, met.event.mark.site) not in named)
            and not (met.event.hazard in ("shared", "stacked") and has_own_sibling(self.ev, met.event.origin))
        ]

    def once(self, *hazards: Hazard, at: Literal["mark", "operation"] = "mark", harmless: bool = True) -> Iterator[Met]:
        """These hazards, each the first of its place: what led to it, or the operation at which it is met.

        Without ``harmless``, those that change no value are left out.
        """
        seen: set[Site] = set()
        for met in self.met():
            site = met.event.mark.site if at == "mark" else met.event.site
            if met.event.hazard in hazards and (harmless or not met.event.harmless) and site not in seen:
                seen.add(site)
                yield met

    def mapped(self) -> list[Mapped]:
        """The maps over rows whose bodies are known."""
        self._run()
        return list(self._mapped.values())

    def of_rows(self, applied: Applied) -> Mapped | None:
        """The map over rows that a library call has made, as seen from here or, where there is one, from elsewhere."""
        self._run()
        if applied in self._mapped:
            return self._mapped[applied]
        there = [e for m, e in self._mapped.items() if m.site.number == applied.site.number and m.site == applied.site]
        return there[0] if len(there) == 1 else None

    def _run(self) -> dict[Unreduced, None]:
        if self._unreduced is None:
            self._unreduced = {}
            for use in self.reach.uses:
                for found in self._of_use(use):
                    self._unreduced.setdefault(found)
        return self._unreduced

    def _of_use(self, use: MapUse) -> Iterator[Unreduced]:
        known = self.ev.knowledge.get(use.applied.name)
        if known is None or known.kind != "map" or not known.spans or known.opaque or use.applied.arguments.open:
            return
        if use.frame not in self.reach.trusted or expects_failure(self.ev, use.frame, use.site.number):
            return
        if handles(self.ev, use.frame, use.site.number, "ValueError", "TypeError") or self._fails_on_call(use):
            return
        functions = list(self.calls.functions_in(known, use.applied.arguments))
        if len(functions) != 1:
            return
        if known.by_hand:
            yield from self._by_rows(use, known, functions[0])
        elif known.specs:
            yield from self._by_specs(use, functions[0])

    def _fails_on_call(self, use: MapUse) -> bool:
        called = self.reach.use_calls.get(use.site, ())
        return bool(called) and all(
            expects_failure(self.ev, self.ev.free_frame(site.ref), site.number) for site in called
        )

    # -- maps with specs

    def _by_specs(self, use: MapUse, function: Value) -> Iterator[Unreduced]:
        typer, found = self._with_specs(use)
        if typer is not None:
            for claim in found:
                yield from self._broken(use, typer, claim, function)

    def claims_of(self, use: MapUse) -> list[Claim]:
        """The claims of a map with specs about each output of its body, with the output's type."""
        return self._with_specs(use)[1]

    def _with_specs(self, use: MapUse) -> tuple[Typer | None, list[Claim]]:
        known = self.ev.knowledge.get(use.applied.name)
        checked = self._checked(use.applied)
        given = self.ev.argument(use.applied, "in_specs")
        out = self.ev.argument(use.applied, "out_specs")
        functions = list(self.calls.functions_in(known, use.applied.arguments)) if known is not None else []
        if checked is None or out is None or len(functions) != 1:
            return None, []
        typer = Typer(self.ev, self.calls, self.table, self._region(use, checked, by_hand=False))
        inside = spec_type(self.ev, given) if given is not None else UNKNOWN
        result = self._typed(typer, use, functions[0], prefix(inside, self._positional(functions[0])))
        found = claims(self.ev, out, result)
        for claim in found:
            typer.tell(side_by_side(claim.given, claim.named, claim.spec))
            typer.tell(dimensions_of_none(claim.given, claim.layout, claim.spec))
            typer.tell(misplaced_under(claim.given, claim.layout, claim.spec, typer.splitting))
            typer.tell(overlaid_under(claim.given, claim.layout, claim.spec))
        self._keep(typer, use, None, function=functions[0])
        return typer, found

    def _broken(self, use: MapUse, typer: Typer, claim: Claim, function: Value) -> Iterator[Unreduced]:
        leaf, known = claim.given, self.ev.knowledge.get(use.applied.name)
        bound = self.calls.bound(use.applied)
        for axis in sorted(leaf.names - claim.named):
            if not bound.open and axis not in bound.names:
                continue  # a wrong name, which is reported separately
            if may_be_one({axis}, claim.named):
                continue  # the axis that a parameter names may be one that the spec spells
            if not typer.region.checked and axis in typer.sent:
                continue  # a reduction or gathering written by hand, as a ring is
            held = leaf.held(axis)
            gathered = typer.region.checked and held.state == "replicated" and held.origin is not None
            if held.state not in DIFFERENT and held.state != "mixed" and not gathered:
                continue
            gradient = leaf.marked("gradient", axis)
            yield Unreduced(
                map=use.site,
                library=use.applied.name.rpartition(".")[2],
                axis=axis,
                checked=typer.region.checked,
                mixed=held.state == "mixed",
                share=gradient is not None or held.state == "partial",
                gradient=gradient,
                origin=self._in_body(typer, use, held.origin),
                spec=claim.spec,
                body=self._name(function),
                ambient=known is None or known.mesh is None or self.ev.argument(use.applied, known.mesh) is None,
                returned=self._returned(function),
                gathered=gathered,
                reduced_loss=self._reduced_loss(typer, use, gradient),
                wrapped=self._wrappers.wrapped(use, function, "out_specs"),
            )

    def _reduced_loss(self, typer: Typer, use: MapUse, gradient: Mark | None) -> Site | None:
        return None if gradient is None else self._in_body(typer, use, typer.reduced_losses.get(gradient))

    def _returned(self, function: Value) -> Site | None:
        if not isinstance(function, FunctionValue):
            return None
        given = [each.value for _, each in self.ev.code(function.ref).returns if each.value is not None]
        return Site(function.ref, given[0]) if len(given) == 1 else None

    @staticmethod
    def _in_body(typer: Typer, use: MapUse, origin: Site | None) -> Site | None:
        """The site of an operation as seen from the body: the operation, or the call in the body that leads to it."""
        path = [site for site in typer.paths.get(origin, ()) if site != use.site] if origin is not None else []
        return path[0] if path else origin

    def _checked(self, applied: Applied) -> bool | None:
        """Whether JAX checks the specs; None if that is not known."""
        for name in _CHECKS:
            values = self.ev.argument(applied, name)
            if values is not None:
                known = constant(values)
                return None if known is None else bool(known.value)
        return True

    # -- maps over rows

    def _by_rows(self, use: MapUse, known: Known, function: Value) -> Iterator[Unreduced]:
        axes = bound_axes(self.calls, use.applied)
        if not axes.open and not axes.names and known.axes is not None:
            # No reduction can name the axis, so all that is known is that the rows of the outputs differ.
            _, result, rows = self._rows(use, function, UNNAMED, frozenset())
            self._mapped.setdefault(use.applied, Mapped(use, UNNAMED, rows, result))
        if axes.open or len(axes.names) != 1:
            return
        axis = next(iter(axes.names))
        sites = self.reach.use_calls.get(use.site, ())
        copies = replicated(self.ev, self.table, sites)
        typer, result, rows = self._rows(use, function, axis, copies)
        self._keep(typer, use, rows)
        first = copied_first(self.ev, self.table, sites)
        if not rows.keys.isdisjoint(first - copies):
            # At least in the first step they are the same everywhere, and so are draws from a key among them.
            again, _, rows_left = self._rows(use, function, axis, copies | first)
            self._keep(again, use, rows_left, only="shared")
        self._mapped.setdefault(use.applied, Mapped(use, axis, rows, result))
        own = not self.table.rows.own_models.isdisjoint(axis.lower().split("_"))
        steps = [leaf for leaf in leaves_of(result) if not own and _applies(leaf, axis)]
        if steps and not any(rows.of_step(leaf.rows) for leaf in steps) and self.reach.calling(_INDEX):
            # Nothing that the host passes need differ: what the body makes of the device's index does.
            _, alike, _ = self._rows(use, function, axis, rows.mapped | copies)
            steps = [leaf for leaf in leaves_of(alike) if _applies(leaf, axis)]
        else:
            steps = [leaf for leaf in steps if rows.of_step(leaf.rows)]
        for leaf in steps:
            gradient, applied = leaf.marked("gradient", axis), leaf.marked("applied", axis)
            meant = made_apart(self.ev, self.table, sites, leaf.rows) or averaged_later(
                self.ev, self.calls, self.table, sites, axis
            )
            if applied is not None and not meant:
                name = use.applied.name.rpartition(".")[2]
                body = self._name(function)
                made = Unreduced(use.site, name, axis, False, False, True, gradient, applied.site, None, body)
                yield replace(made, reduced_loss=self._reduced_loss(typer, use, gradient))
        yield from self._stacked(use, typer, self._name(function))
        for claim in claims_of_axes(self.ev.argument(use.applied, "out_axes") or NOTHING, result, use.site):
            # The path may well depend on whether there is a map at all.
            if claim.given.state(axis) in DIFFERENT and rows.of_some_data(claim.given.rows):
                yield from self._broken(use, typer, claim, function)

    def _stacked(self, use: MapUse, typer: Typer, body: str) -> Iterator[Unreduced]:
        """Gradients that are applied without a reduction over the axis of a `vmap`, over which others are reduced.

        Without such others, each row of the `vmap` may well train its own model.
        """
        name = use.applied.name.rpartition(".")[2]
        for mark, site in typer.applied.items():
            other = typer.settled.get(mark.axis)
            if other is not None:
                yield Unreduced(use.site, name, mark.axis, False, False, True, mark, site, None, body, sibling=other)

    def _rows(self, use: MapUse, function: Value, axis: str, copies: frozenset[int]) -> tuple[Typer, Type, Rows]:
        """The typed body of a map over rows, some of which are copies, and what it says about its arguments."""
        typer = Typer(self.ev, self.calls, self.table, self._region(use, False, by_hand=True))
        sites = self.reach.use_calls.get(use.site, ())
        count = self._positional(function)
        types = prefix(rows_type(self.ev.argument(use.applied, "in_axes"), axis, use.site), count)
        alike = copies | self._static(use.applied)
        for position, given in enumerate(types):
            if position in alike:
                types[position] = ALL_ALIKE
            else:
                types[position] = changed(given, partial(_numbered, position, axis))
        mapped = frozenset(position for position, given in enumerate(types) for leaf in leaves_of(given) if leaf.rows)
        result = self._typed(typer, use, function, types)
        known = carried(self.ev, sites) | typer.copies | self._models(function)
        return typer, result, Rows(mapped, known, frozenset(typer.keys), frozenset(typer.derived))

    def _models(self, function: Value) -> frozenset[int]:
        """The positions of parameters that hold a model, judging by their names."""
        if not isinstance(function, FunctionValue):
            return frozenset()
        formals = self.ev.project.function(function.ref).formals[function.receiver is not None :]
        return frozenset(
            n for n, formal in enumerate(formals) if not _MODELS.isdisjoint(formal.name.lower().split("_"))
        )

    def _static(self, applied: Applied) -> frozenset[int]:
        """The positions of static arguments."""
        given = self.ev.argument(applied, "static_broadcasted_argnums")
        value = certain(given) if given is not None else None
        listed = [constant(each) for each in value.elements] if isinstance(value, Collection) else [value]
        return frozenset(k.value for k in listed if isinstance(k, Constant) and isinstance(k.value, int))

    # -- both

    def _region(self, use: MapUse, checked: bool, *, by_hand: bool) -> Region:
        component = self.ev.project.component
        own = any(component[path] == component[use.site.ref.path] for path in self._reducing_optimizers)
        bound = self.calls.bound(use.applied) | self.reach.around_of(use.site.ref)
        return Region(checked, by_hand, own_optimizers=own, bound=None if bound.open else bound.names)

    @cached_property
    def _reducing_optimizers(self) -> frozenset[Path]:
        """The files in which a function makes an optimizer, and a function in it reduces over devices."""
        making = frozenset(self.reach.calling(self.table.optimizers.own))
        reducing = frozenset(self.reach.calling(_REDUCTIONS))
        parents = {ref: self.ev.project.function(ref).parent for ref in reducing}
        return frozenset(
            ref.path
            for ref, parent in parents.items()
            if ref in making or (parent is not None and self.ev.project.ref(ref.path, parent) in making)
        )

    def _typed(self, typer: Typer, use: MapUse, function: Value, types: list[Type]) -> Type:
        # A separate frame: what surrounds the map is not in the body.
        root = Scope(Frame(use.frame.code, use.frame.ref, depth=use.frame.depth), {}, None, 0)
        if isinstance(function, FunctionValue):
            return transforms.run(typer, root, function, types, use.site)
        passed = Passed(tuple(types), (), Arguments(), False)
        return application.apply(typer, root, function, passed, use.site) or UNKNOWN

    def _positional(self, function: Value) -> int:
        """The number of arguments that a function takes by position."""
        if isinstance(function, FunctionValue):
            formals = self.ev.project.function(function.ref).formals
            if any(f.kind == "*" for f in formals):
                return 8
            count = sum(f.kind in ("positional-only", "standard") for f in formals)
            return count - (1 if function.receiver is not None else 0)
        if isinstance(function, Applied) and function.arguments.positional:
            inner = certain(function.arguments.positional[0])
            known = self.ev.knowledge.get(function.name)
            taken = len(function.arguments.positional) - 1 if known is not None and known.kind == "currying" else 0
            if known is not None and known.kind == "currying":
                taken += self._taken_by_name(inner, function.arguments)
            return max(0, self._positional(inner) - taken) if inner is not None else 0
        return 1 if isinstance(function, External) else 0  # at least; its parameters are not known

    def _taken_by_name(self, function: Value | None, arguments: Arguments) -> int:
        """The number of positional parameters that a partial binds by name."""
        if not isinstance(function, FunctionValue):
            return 0
        formals = self.ev.project.function(function.ref).formals
        names = {formal.name for formal in formals if formal.kind == "standard"}
        return sum(name in names for name, _ in arguments.keywords)

    def _name(self, function: Value) -> str:
        ref = getattr(function, "ref", None)
        if ref is not None:
            return self.ev.project.function(ref).name
        if isinstance(function, Applied) and function.arguments.positional:
            inner = certain(function.arguments.positional[0])
            return self._name(inner) if inner is not None else "the body"
        return "the body"

    def _keep(
        self, typer: Typer, use: MapUse, rows: Rows | None, only: str | None = None, function: Value | None = None
    ) -> None:
        for event in typer.events:
            if only is not None and event.hazard != only:
                continue
            if rows is not None and not _differs(event, rows):
                continue
            path = tuple(site for site in typer.paths.get(event.mark.site, ()) if site != use.site)
            name = use.applied.name.rpartition(".")[2]
            wrapped = None
            if function is not None and event.hazard == "scalar":
                wrapped = self._wrappers.wrapped(use, function, "out_specs")
            self._met.setdefault(Met(event, path, use.site, name, by_hand=rows is not None, wrapped=wrapped))


def _applies(leaf: Leaf, axis: str) -> bool:
    """Whether a value is the result of applying a gradient that is not reduced over an axis."""
    return leaf.marked("gradient", axis) is not None and leaf.marked("applied", axis) is not None


def _numbered(position: int, axis: str, leaf: Leaf) -> Leaf:
    """A leaf of an argument of a map over rows, with its position; unchanged if every device has the same."""
    return leaf if leaf.state(axis) in ALIKE else replace(leaf, rows=frozenset((position,)))


def _differs(event: Event, rows: Rows) -> bool:
    """Whether a hazard in a map over rows concerns values that certainly differ between them; else it is not one."""
    if event.hazard == "predicate":
        return not event.rows or rows.of_data(event.rows)
    if event.hazard == "shared":
        return rows.of_data(event.rows)
    if event.hazard in ("bent", "ratio"):
        return rows.of_some_data(event.rows)
    return True
