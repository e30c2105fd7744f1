"""Types calls of collectives in a mapped body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Applied, Constant, Site, constant
from spmdlint.analysis.meshtypes.dimensions import misplaced_by, moves, overlaid, rearranged
from spmdlint.analysis.meshtypes.passed import Passed
from spmdlint.analysis.meshtypes.primitives import moved, place_on_axis, reduced
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import LITERAL, UNKNOWN, Leaf, Type, changed, flat, leaves_of
from spmdlint.analysis.meshtypes.symbols import axis_names, may_be_one
from spmdlint.knowledge.load import Known

if TYPE_CHECKING:
    from spmdlint.analysis.callgraph.arguments import Axes
    from spmdlint.analysis.meshtypes.typer import Typer


def collective(typer: Typer, scope: Scope, name: str, known: Known, passed: Passed, site: Site) -> Type | None:
    rule = typer.table.rules.get(name)
    made = Applied(name, passed.values, site)
    given = typer.ev.argument(made, known.axes or "")
    axes = axis_names(typer.calls, given) if given is not None else None
    groups = passed.values.keyword("axis_index_groups")
    if axes is None or axes.open or (groups is not None and not _is_none(groups)) or _fails(typer, axes):
        return UNKNOWN
    names = sorted(axes.names)
    if rule == "index":
        return place_on_axis(names, site)
    if rule == "size":
        return LITERAL
    value = passed.get(0, known.parameters[0])
    if rule is not None and rule != "cast" and not (value is not None and flat(value).literal):
        scope.collectives[site] = (name.rpartition(".")[2], axes.names)
    if value is None or may_be_one(axes.names, {held for leaf in leaves_of(value) for held in leaf.names}):
        return UNKNOWN
    if rule in ("psum", "pmean", "pmax", "pmin"):

        def reduce(leaf: Leaf) -> Leaf:
            result, events = reduced(leaf, names, rule, site)
            typer.tell(events)
            for axis in names:
                if axis in typer.stacked and leaf.marked("gradient", axis) is not None:
                    typer.settled.setdefault(axis, site)
            layout = tuple(held - axes.names for held in leaf.layout) if leaf.layout is not None else None
            result = replace(result, scalar=leaf.scalar, layout=layout)
            return overlaid(leaf, result, axes.names, site) if rule in ("psum", "pmean") else result

        return changed(value, reduce)
    if rule is None or _to_reduced(passed):
        return UNKNOWN
    if rule == "permute":
        typer.sent.update(names)
    how = moves(typer.ev, made)
    if how.splits:
        typer.splitting.add(site)

    def move(leaf: Leaf) -> Leaf:
        typer.tell(misplaced_by(leaf, made, names, how, typer.splitting))
        return rearranged(leaf, moved(leaf, names, rule, site), names, how, site)

    return changed(value, move)


def _fails(typer: Typer, axes: Axes) -> bool:
    """Whether no axis of a collective is bound: it fails, which is told, and what was meant is not known."""
    bound = typer.region.bound
    return bound is not None and not axes.names & bound.union(typer.stacked)


def _is_none(values: object) -> bool:
    return isinstance(values, frozenset) and all(isinstance(v, Constant) and v.value is None for v in values)


def _to_reduced(passed: Passed) -> bool:
    """Whether a cast or gathering has a target type that is not modelled here."""
    to = passed.values.keyword("to")
    known = constant(to) if to is not None else None
    return to is not None and (known is None or known.value != "varying")
