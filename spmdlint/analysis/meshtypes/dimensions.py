"""Which dimension of an array an axis splits, and collectives or specs that take it for another dimension.

Specs say it of arguments; tiled collectives move it: gathering a dimension makes it whole, scattering splits it.
Nothing is concluded from a dimension that is counted from the last, because the number of dimensions is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, Constant, Site, constant
from spmdlint.analysis.meshtypes.primitives import Event
from spmdlint.analysis.meshtypes.states import ALIKE, Layout, Leaf, Mark

_NOTHING: frozenset[str] = frozenset()
_GATHERS = {"jax.lax.all_gather": "axis", "jax.lax.all_to_all": "concat_axis"}
_SPLITS = {"jax.lax.psum_scatter": "scatter_dimension", "jax.lax.all_to_all": "split_axis"}
_FIRST = frozenset((Constant(0),))


class Moves(Struct, frozen=True):
    """The dimension that a collective puts together, and the one that it splits, as far as they are known.

    ``tiled``: it leaves their number as it is; None if that is not known.
    """

    gathers: bool
    splits: bool
    gathered: int | None
    split: int | None
    tiled: bool | None


def moves(ev: Evaluator, made: Applied) -> Moves:
    """What a call of a collective does to the dimensions of its array."""
    gathered, split = _GATHERS.get(made.name), _SPLITS.get(made.name)
    tiled = constant(ev.argument(made, "tiled") or frozenset((Constant(False),)))
    known = tiled.value if tiled is not None and isinstance(tiled.value, bool) else None
    return Moves(
        gathered is not None, split is not None, _dimension(ev, made, gathered), _dimension(ev, made, split), known
    )


def rearranged(before: Leaf, after: Leaf, axes: list[str], how: Moves, site: Site) -> Leaf:
    """The result of a collective with what is known of the dimensions that it leaves whole or splits."""
    if len(axes) != 1 or not (how.gathers or how.splits):
        return after
    if not how.tiled:
        return _piled(before, after, axes[0], how, site)
    if (how.gathers and how.gathered is None) or (how.splits and how.split is None):
        return after
    layout = before.layout
    after = replace(after, marks=after.marks | {mark for mark in before.marks if mark.fact == "apart"})
    if how.gathered and layout is not None and [axes[0] in held for held in layout][:2] in ([True], [True, False]):
        after = replace(after, marks=after.marks | {Mark("apart", axes[0], site)})
    if layout is not None and how.gathers:
        layout = tuple(held - {axes[0]} for held in layout)
    if how.split is not None:
        layout = _split(layout, how.split, axes[0])
        held = tuple((axis, replace(h, origin=site) if axis == axes[0] else h) for axis, h in after.axes)
        after = replace(after, axes=held)
    return replace(after, layout=layout)


def _piled(before: Leaf, after: Leaf, axis: str, how: Moves, site: Site) -> Leaf:
    """The parts of a matrix's rows one above the other, in three dimensions: marked so."""
    rows = before.layout[0] if before.layout is not None and len(before.layout) == 2 else _NOTHING
    if how.splits or how.gathered != 0 or how.tiled is not False or axis not in rows:
        return after
    return replace(after, marks=after.marks | {Mark("piled", axis, site)})


def piled_in(left: Leaf, right: Leaf, site: Site) -> Iterator[Event]:
    """A product with such parts on its right, whose rows are then only those of one part."""
    for mark in sorted((m for m in right.marks if m.fact == "piled"), key=lambda m: m.axis):
        if left.layout is None or len(left.layout) < 2 or mark.axis not in left.layout[-1]:
            yield Event("piled", site, mark.axis, "all_gather", mark)


def misplaced_by(before: Leaf, made: Applied, axes: list[str], how: Moves, splitting: Set[Site]) -> Iterator[Event]:
    """A collective that puts together the parts along one dimension, though the axis splits a different one.

    ``splitting`` are the collectives of the body that split a dimension.
    """
    if how.tiled and how.gathered is not None and len(axes) == 1:
        yield from _misplaced(before, axes[0], how.gathered, made.name.rpartition(".")[2], made.site, splitting)


def misplaced_under(leaf: Leaf, claimed: Layout, spec: Site, splitting: Set[Site]) -> Iterator[Event]:
    """A spec that names an axis at a different dimension of an output than the one that it splits.

    If a collective of the body has split it, one of ``splitting``, the event is there, and led to by the spec.
    """
    for dimension, axes in enumerate(claimed):
        for axis in sorted(axes):
            for event in _misplaced(leaf, axis, dimension, "", spec, splitting):
                began = event.mark.site
                if began in splitting:
                    event = replace(event, site=began, mark=Mark("placed", axis, spec), origin=began)
                yield event


def overlaid(before: Leaf, after: Leaf, axes: Set[str], site: Site) -> Leaf:
    """The sum or mean over axes with a mark for those that split a dimension of the array, whose parts are then mixed.

    What is split along the first dimension alone may be one separate array for each device, which may well be added.
    """
    marks = set()
    for number, held in enumerate(before.layout or ()):
        for axis in held & axes if number or held - axes else ():
            if before.state(axis) == "varying":
                marks.add(Mark("overlaid", axis, site))
    return replace(after, marks=after.marks | marks) if marks else after


def overlaid_under(leaf: Leaf, claimed: Layout, spec: Site) -> Iterator[Event]:
    """A spec that says of an output that an axis splits it, although its parts were mixed by a sum over that axis."""
    for dimension, axes in enumerate(claimed):
        for axis in sorted(axes):
            mark = leaf.marked("overlaid", axis)
            if mark is not None and leaf.state(axis) in ALIKE:
                placed = Mark("placed", axis, spec)
                yield Event("overlaid", mark.site, axis, "", placed, dimensions=(dimension, dimension))


def of_product(left: Leaf, right: Leaf) -> Layout | None:
    """How ``left @ right`` is split: like the rows of the one and the columns of the other; None if not known.

    A spec may leave out the last dimensions, so the last one that it names must be certain to be summed over.
    """
    rows, columns = left.layout, right.layout
    if rows is None or len(rows) < 2:
        return None
    summed = columns[-2] if columns is not None and len(columns) > 1 else _NOTHING
    if rows[-1] and not rows[-1] & summed:
        return None
    return (*rows[:-1], columns[-1] if columns is not None and len(columns) > 1 else _NOTHING)


def _misplaced(leaf: Leaf, axis: str, dimension: int, name: str, site: Site, splitting: Set[Site]) -> Iterator[Event]:
    if leaf.marked("apart", axis) is not None:
        return  # each device had an array of its own, which a spec may put together along any dimension
    held, began = [number for number, axes in enumerate(leaf.layout or ()) if axis in axes], leaf.held(axis).origin
    if len(held) == 1 and held[0] != dimension:
        if held[0] == 0 and began not in splitting:
            return  # what a spec splits along the first dimension may be one separate array for each device
        placed = Mark("placed", axis, began or site)
        yield Event("misplaced", site, axis, name, placed, dimensions=(dimension, held[0]))


def _split(layout: Layout | None, dimension: int, axis: str) -> Layout | None:
    """A layout with one more dimension split; if nothing was known, only the first dimension can be named."""
    if layout is None:
        return (frozenset((axis,)),) if dimension == 0 else None
    dimensions = [*layout, *(_NOTHING for _ in range(dimension + 1 - len(layout)))]
    dimensions[dimension] |= {axis}
    return tuple(dimensions)


def _dimension(ev: Evaluator, made: Applied, parameter: str | None) -> int | None:
    """The dimension that an argument names, counted from the first; None if it is not known."""
    if parameter is None or made.arguments.open:
        return None
    known = constant(ev.argument(made, parameter) or _FIRST)
    return known.value if known is not None and type(known.value) is int and known.value >= 0 else None
