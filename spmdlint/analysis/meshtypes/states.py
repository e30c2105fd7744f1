"""Mesh types: for each axis of the mesh, how the copies of a value along it relate.

============ =========================================================================================
invariant    the same on all devices along the axis, and JAX's `check_vma` types it so
replicated   the same on all devices, but JAX types it as varying: the result of `all_gather` and `pcast`
partial      this device's share of a sum or mean over the axis that has not been taken yet
varying      different on the devices
mixed        varying on one path through the program, the same on another
unknown      nothing is known
============ =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Site

State = Literal["bottom", "invariant", "replicated", "partial", "varying", "mixed", "unknown"]
Fact = Literal[
    "gradient",
    "applied",
    "summed",
    "averaged",
    "transposed",
    "settled",
    "magnified",
    "bent",
    "ratio",
    "inverse",
    "drawn",
    "derived",
    "repeated",
    "added",
    "contracted",
    "placed",
    "piled",
    "overlaid",
    "apart",
]
Layout: TypeAlias = tuple[frozenset[str], ...]
"""For each dimension of an array, the axes that split it."""

ALIKE = frozenset(("invariant", "replicated"))
DIFFERENT = frozenset(("partial", "varying"))


class Mark(Struct, frozen=True):
    """What has happened to a value along an axis, and where.

    - *gradient*: a derivative of this device's loss; *applied*: added to something that is not a gradient;
    - *summed*, *averaged*: the result of a reduction; *transposed*: summed by the derivative of a checked region;
    - *settled*: a derivative of an unknown value by an invariant one: invariant as well in a checked region;
    - *magnified*: in an unchecked region, a derivative of a loss that `psum` has summed, whose transpose sums again;
    - *added*: a product of this device's parts, to which a value that is the same everywhere was added;
    - *bent*: a non-linear function of a partial value; *ratio*: the quotient of two partial ones; *inverse*: a value
      that is the same everywhere divided by a partial one;
    - *drawn*: random numbers from a key that is the same on all devices; *derived*: that key, from another key;
    - *contracted*: a product that sums over a dimension which is split over the axis;
    - *repeated*: made, or not made, depending on a predicate; *placed*: splits another dimension than a collective or
      a spec says. Of these, not of values;
    - *piled*: the parts of a matrix's rows, gathered along a new dimension;
    - *overlaid*: parts of a dimension that the axis splits, added up as if they were shares of the same elements;
    - *apart*: arrays that each device had for itself, put together along a dimension that the spec did not name.
    """

    fact: Fact
    axis: str
    site: Site


class Held(Struct, frozen=True, eq=False):
    """The state along one axis; ``origin`` says where the value began to vary, only for the reader."""

    state: State
    origin: Site | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.state == other.state

    def __hash__(self) -> int:
        return hash(self.state)


class Leaf(Struct, frozen=True):
    """The type of an array, or of all arrays in a pytree: by axis, with a default for the axes not named.

    ``literal``: it is made of constants alone. ``layout``: as far as specs and collectives tell. ``scalar``: it
    certainly has no dimensions. ``rows``: the arguments of a map over rows that it is made from, by position.
    """

    default: State = "unknown"
    axes: tuple[tuple[str, Held], ...] = ()
    marks: frozenset[Mark] = frozenset()
    literal: bool = False
    rows: frozenset[int] = frozenset()
    layout: Layout | None = None
    scalar: bool = False

    def held(self, axis: str) -> Held:
        return next((held for name, held in self.axes if name == axis), Held(self.default))

    def state(self, axis: str) -> State:
        return self.held(axis).state

    def marked(self, fact: Fact, axis: str) -> Mark | None:
        found = [mark for mark in self.marks if mark.fact == fact and mark.axis == axis]
        return min(found, key=lambda m: (m.site.ref.path, m.site.ref.index, m.site.number)) if found else None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.axes)


class Row(Struct, frozen=True):
    """A tuple or list of known length."""

    elements: tuple[Type, ...]


class Many(Struct, frozen=True):
    """A sequence of unknown length, by the type of its elements."""

    element: Type


class Record(Struct, frozen=True):
    """A dictionary or object by its known keys; ``rest`` is the type of everything else in it."""

    items: tuple[tuple[object, Type], ...]
    rest: Type | None = None

    def get(self, key: object) -> Type | None:
        return next((each for name, each in self.items if name == key), self.rest)


class Pullback(Struct, frozen=True):
    """The function that `vjp` returns; the differentiated function has this result, from these arguments."""

    result: Type
    primals: tuple[Type, ...]
    site: Site


Type: TypeAlias = Leaf | Row | Many | Record | Pullback

BOTTOM = Leaf("bottom")
UNKNOWN = Leaf("unknown")
ALL_ALIKE = Leaf("invariant")
LITERAL = Leaf("invariant", literal=True)


def leaf_of(
    axes: Iterable[tuple[str, Held]],
    default: State,
    marks: frozenset[Mark],
    literal: bool = False,
    rows: frozenset[int] = frozenset(),
) -> Leaf:
    """A leaf in normal form: an axis with the default state is not named."""
    kept = tuple(sorted((n, h) for n, h in dict(axes).items() if h.state != default or h.origin is not None))
    return Leaf(default, kept, marks, literal, rows)


def rows_of(leaves: Iterable[Leaf]) -> frozenset[int]:
    """The mapped arguments that any of the leaves is made from, except leaves that are the same everywhere by now."""
    return frozenset(position for leaf in leaves if not is_alike(leaf) for position in leaf.rows)


def is_alike(leaf: Leaf) -> bool:
    """Whether a leaf is the same everywhere: along all axes that it names, or by default if it names none."""
    return all(h.state in ALIKE for _, h in leaf.axes) and (bool(leaf.axes) or leaf.default in ALIKE)


def each_axis(leaves: Iterable[Leaf]) -> list[str]:
    return sorted({name for leaf in leaves for name in leaf.names})


# -- the two ways to combine types

_ORDER: tuple[State, ...] = ("bottom", "invariant", "replicated", "mixed", "unknown", "varying")


def together(states: Iterable[State]) -> State:
    """The state of a value that is computed from several: it varies if one of them does."""
    found: set[State] = {"varying" if state in DIFFERENT else state for state in states}
    return max(found, key=_ORDER.index) if found else "invariant"


def either(states: Iterable[State], told_apart: bool) -> State:
    """The state of one value or another, by a branch; ``told_apart``: the branch does not depend on devices."""
    found = set(states) - {"bottom"}
    if not found:
        return "bottom"
    if len(found) == 1:
        return next(iter(found))
    if "unknown" in found:
        return "unknown"
    if found <= ALIKE:
        return "replicated"
    if found <= DIFFERENT:
        return "varying"
    return "mixed" if told_apart else "unknown"


def either_leaf(leaves: list[Leaf], told_apart: bool = True) -> Leaf:
    """The type of one leaf or another."""
    there = [leaf for leaf in leaves if leaf.default != "bottom"]
    if not there:
        return BOTTOM
    if len(there) == 1:
        return there[0]
    default = either((leaf.default for leaf in there), told_apart)
    axes = []
    for axis in each_axis(there):
        helds = [leaf.held(axis) for leaf in there]
        origin = next((held.origin for held in helds if held.state in DIFFERENT and held.origin), None)
        axes.append((axis, Held(either((held.state for held in helds), told_apart), origin)))
    same = all(leaf.marks == there[0].marks for leaf in there)
    marks = there[0].marks if same else frozenset(m for leaf in there for m in leaf.marks if _counts(m, there))
    return leaf_of(axes, default, marks, all(leaf.literal for leaf in there), rows_of(there))


# Marks that count even if they are on one path only.
_ON_ONE_WAY = frozenset(("gradient", "applied", "added", "bent", "ratio"))


def _counts(mark: Mark, leaves: list[Leaf]) -> bool:
    """Whether a mark of one path stays. Without specs, as in a map over rows, no other path may reduce the value."""
    reduced = any(not leaf.literal and leaf.state(mark.axis) in ALIKE for leaf in leaves)
    return mark.fact in _ON_ONE_WAY and not (mark.fact in ("gradient", "applied", "added") and reduced)


def either_type(types: list[Type], told_apart: bool = True) -> Type:
    """One type or another, merged by structure if they have the same."""
    there = [each for each in types if each != BOTTOM]
    if not there:
        return BOTTOM
    first = there[0]
    if all(each == first for each in there):
        return first
    if isinstance(first, Row) and all(isinstance(t, Row) and len(t.elements) == len(first.elements) for t in there):
        columns = zip(*(t.elements for t in there if isinstance(t, Row)), strict=True)
        return Row(tuple(either_type(list(column), told_apart) for column in columns))
    if isinstance(first, Record) and all(isinstance(t, Record) and _keys(t) == _keys(first) for t in there):
        records = [t for t in there if isinstance(t, Record)]
        items = tuple((key, either_type([r.get(key) or UNKNOWN for r in records], told_apart)) for key in _keys(first))
        rests = [r.rest for r in records if r.rest is not None]
        return Record(items, either_type(rests, told_apart) if rests else None)
    return either_leaf([flat(each) for each in there], told_apart)


def _keys(record: Record) -> list[object]:
    return [key for key, _ in record.items]


# -- pytrees


def leaves_of(each: Type) -> list[Leaf]:
    """The leaves of a pytree."""
    if isinstance(each, Leaf):
        return [each]
    if isinstance(each, Pullback):
        return [UNKNOWN]
    if isinstance(each, Many):
        return leaves_of(each.element)
    if isinstance(each, Row):
        return [leaf for element in each.elements for leaf in leaves_of(element)]
    inside = [leaf for _, item in each.items for leaf in leaves_of(item)]
    return inside + (leaves_of(each.rest) if each.rest is not None else [])


def flat(each: Type) -> Leaf:
    """A pytree as one leaf: what its leaves agree about."""
    leaves = leaves_of(each)
    return either_leaf(leaves, told_apart=False) if leaves else LITERAL


def changed(each: Type, change: Callable[[Leaf], Leaf]) -> Type:
    """The pytree with every leaf changed."""
    if isinstance(each, Leaf):
        return change(each)
    if isinstance(each, Pullback):
        return each
    if isinstance(each, Many):
        return Many(changed(each.element, change))
    if isinstance(each, Row):
        return Row(tuple(changed(element, change) for element in each.elements))
    rest = changed(each.rest, change) if each.rest is not None else None
    return Record(tuple((key, changed(item, change)) for key, item in each.items), rest)


def element_of(each: Type) -> Type:
    """The type of the elements that iteration gives."""
    if isinstance(each, Many):
        return each.element
    if isinstance(each, Row):
        return either_type(list(each.elements), told_apart=False) if each.elements else BOTTOM
    return without_layout(flat(each))


def item_of(each: Type, key: object) -> Type:
    """The element at a constant index or key."""
    if isinstance(each, Row) and isinstance(key, int) and -len(each.elements) <= key < len(each.elements):
        return each.elements[key]
    if isinstance(each, Record):
        return each.get(key) or UNKNOWN
    if isinstance(each, Many):
        return each.element
    return without_layout(flat(each))


def without_layout(leaf: Leaf) -> Leaf:
    """A leaf whose dimensions are no longer those of the argument, such as an element of it."""
    return replace(leaf, layout=None, scalar=False) if leaf.layout is not None or leaf.scalar else leaf
