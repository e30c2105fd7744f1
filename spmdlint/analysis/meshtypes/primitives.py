"""The typing rules of single operations: those that compute an array from others, and those that communicate.

A rule gives the type of the result, and events: operations that a rule of the linter may want to report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Site
from spmdlint.analysis.meshtypes.states import (
    ALIKE,
    DIFFERENT,
    LITERAL,
    Held,
    Leaf,
    Mark,
    State,
    each_axis,
    leaf_of,
    rows_of,
    together,
)
from spmdlint.knowledge.typing import Typed

EVERY_AXIS = ""
Hazard = Literal[
    "twice",
    "added",
    "bent",
    "ratio",
    "shared",
    "stacked",
    "predicate",
    "contracted",
    "misplaced",
    "piled",
    "overlaid",
    "scalar",
]


class Event(Struct, frozen=True, eq=False):
    """A hazard at an operation; ``mark`` says what led to it. ``harmless``: it costs time, but changes no value.

    ``rows``: the arguments of a map over rows that it concerns. ``origin``: where it began to vary. ``dimensions``: the
    one that is named, and the one that the axis splits.
    """

    hazard: Hazard
    site: Site
    axis: str
    name: str
    mark: Mark
    harmless: bool = False
    rows: frozenset[int] = frozenset()
    origin: Site | None = None
    dimensions: tuple[int, int] | None = None

    def _compared(self) -> tuple[object, ...]:
        return self.hazard, self.site, self.axis, self.name, self.mark, self.harmless, self.rows, self.dimensions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())


# -- computing

_KEEPS_SHARES = frozenset(("sum", "mean", "linear", "sumlike"))


def computed(typed: Typed, operands: Sequence[Leaf], site: Site, *, whole: bool = False) -> Leaf:
    """The type of a result that is computed from some arrays. ``whole``: a reduction over everything."""
    if typed == "shape":
        return LITERAL
    if typed == "like":
        return _alike_as(operands)
    known = [leaf for leaf in operands if leaf.default != "bottom"]
    if not known:
        return LITERAL if not operands else operands[0]
    axes = [(axis, _meet(typed, known, axis, site if whole else None)) for axis in each_axis(known)]
    default = together(leaf.default for leaf in known)
    literal = all(leaf.literal for leaf in known)
    return leaf_of(axes, default, _marks(typed, known, dict(axes), site), literal, rows_of(known))


def _alike_as(operands: Sequence[Leaf]) -> Leaf:
    axes = []
    for axis in each_axis(operands):
        state = together(leaf.state(axis) for leaf in operands)
        axes.append((axis, Held("replicated" if state == "varying" else state)))
    default: State = "invariant" if all(leaf.default == "invariant" for leaf in operands) else "unknown"
    return leaf_of(axes, default, frozenset(), literal=True)


def _meet(typed: Typed, operands: Sequence[Leaf], axis: str, whole: Site | None) -> Held:
    helds = [leaf.held(axis) for leaf in operands]
    state = together(held.state for held in helds)
    origin = next((held.origin for held in helds if held.state in (*DIFFERENT, "mixed") and held.origin), None)
    if state != "varying":
        return Held(state, origin)
    if whole is not None and typed in ("sum", "mean"):
        return Held("partial", whole)
    different = [held for held in helds if held.state in DIFFERENT]
    shares = all(held.state == "partial" for held in different)
    others_alike = all(held.state in ALIKE for held in helds if held.state not in DIFFERENT)
    if shares and others_alike and _linear_in(typed, helds):
        return Held("partial", origin)
    return Held("varying", origin)


def _linear_in(typed: Typed, helds: Sequence[Held]) -> bool:
    """Whether a result is a share, if the operands that differ are shares."""
    if typed in _KEEPS_SHARES:
        return True
    if typed == "product":
        return sum(held.state in DIFFERENT for held in helds) == 1
    if typed == "quotient":
        return len(helds) == 2 and helds[1].state in ALIKE
    return False


_KEEPS_SUMMANDS = frozenset(("linear", "sum", "sumlike", "product"))
_OF_DERIVATIVES = frozenset(("gradient", "applied", "magnified", "bent", "ratio"))


def _marks(typed: Typed, operands: Sequence[Leaf], states: dict[str, Held], site: Site) -> frozenset[Mark]:
    found = {mark for leaf in operands for mark in leaf.marks if _stays(mark, leaf, operands, typed)}
    for axis, held in states.items():
        if held.state not in DIFFERENT:
            continue
        shares = [leaf for leaf in operands if leaf.state(axis) == "partial"]
        only_shares = all(leaf.state(axis) in (*ALIKE, "partial") for leaf in operands)
        if _gives_ratio(typed, operands, axis):
            found = {mark for mark in found if mark.fact != "bent" or mark.axis != axis}
            found.add(Mark("ratio", axis, site))
        elif _is_inverse(typed, operands, axis):
            found.add(Mark("inverse", axis, site))
        elif only_shares and (len(shares) > 1 if typed == "product" else typed == "nonlinear" and shares):
            found.add(Mark("bent", axis, site))
        gradients = [leaf for leaf in operands if leaf.marked("gradient", axis)]
        if typed == "sumlike" and gradients and any(not leaf.marks and not leaf.literal for leaf in operands):
            found.add(Mark("applied", axis, site))
    return frozenset(found)


def _stays(mark: Mark, leaf: Leaf, operands: Sequence[Leaf], typed: Typed) -> bool:
    """Whether what has happened to an operand is true of the result as well."""
    others = [other for other in operands if other is not leaf]
    if mark.fact == "piled":
        return False
    if mark.fact in _OF_DERIVATIVES:
        # A step adds a gradient to parameters, which a map over rows types as different on each device.
        step = typed == "sumlike" and mark.fact in ("gradient", "applied")
        return step or all(_belongs(other, mark.axis) for other in others)
    if mark.fact == "drawn":
        return typed in ("linear", "sumlike", "product", "nonlinear", "joined", "quotient") and not any(
            leaf.state(axis) in ALIKE for axis in _differing(others)
        )
    if mark.fact == "contracted" and typed not in _KEEPS_SUMMANDS:
        return False  # divided, it is a mean of its own
    if mark.fact == "added" and typed != "linear":
        return False
    if all(other.literal or other.marked(mark.fact, mark.axis) for other in others):
        return True
    # A sum over devices that is scaled by a value which is the same on all, such as a count, remains a sum.
    scaled = mark.fact == "summed" and all(other.state(mark.axis) in ALIKE for other in others)
    return typed == "quotient" and leaf is operands[0] and scaled


def with_bias(product: Leaf, bias: Leaf, whole: Leaf, site: Site) -> Leaf:
    """A product of parts plus a value that is the same on all devices: a sum over them adds it once per device."""
    axes = [
        axis
        for axis in each_axis([product])
        if product.state(axis) in DIFFERENT and bias.state(axis) == "invariant" and not bias.literal and not bias.marks
    ]
    return replace(whole, marks=whole.marks | {Mark("added", axis, site) for axis in axes})


def _gives_ratio(typed: Typed, operands: Sequence[Leaf], axis: str) -> bool:
    """Whether a sum of this device's data is divided by its count, directly or through a weight made from that."""
    if len(operands) != 2 or typed not in ("product", "quotient"):
        return False
    if typed == "quotient":
        return _is_ratio(operands[0], operands[1], axis)
    return any(
        weight.marked("inverse", axis) is not None
        and whole.state(axis) == "partial"
        and not whole.marked("gradient", axis)
        for weight, whole in (operands, tuple(reversed(operands)))
    )


def _is_ratio(above: Leaf, below: Leaf, axis: str) -> bool:
    """Whether the quotient is a sum of this device's data over its count (possibly clamped), and not a derivative."""
    if above.state(axis) != "partial" or above.marked("gradient", axis):
        return above.state(axis) == below.state(axis) == "partial"
    return _counts(below, axis)


def _is_inverse(typed: Typed, operands: Sequence[Leaf], axis: str) -> bool:
    """Whether the result is a weight: a value that is the same everywhere, divided by this device's count."""
    return (
        typed == "quotient"
        and len(operands) == 2
        and operands[0].state(axis) in ALIKE
        and _counts(operands[1], axis)
        and not operands[1].marked("gradient", axis)
    )


def _counts(leaf: Leaf, axis: str) -> bool:
    """Whether the value may be the number of this device's examples, possibly clamped from below."""
    return leaf.state(axis) == "partial" or leaf.marked("bent", axis) is not None


def _belongs(other: Leaf, axis: str) -> bool:
    """Whether an operand leaves a derivative a derivative: it is the same everywhere, or itself made of shares."""
    return other.state(axis) in (*ALIKE, "partial") or any(
        mark.axis == axis and mark.fact in _OF_DERIVATIVES for mark in other.marks
    )


def _differing(leaves: Sequence[Leaf]) -> list[str]:
    """The axes along which one of the operands differs."""
    return [axis for axis in each_axis(leaves) if any(leaf.state(axis) in DIFFERENT for leaf in leaves)]


def shared_draws(typed: Typed, operands: Sequence[Leaf], site: Site) -> Iterable[Event]:
    """Random numbers that are the same on all devices, combined with data that differ."""
    if typed not in ("sumlike", "product", "joined"):
        return
    for leaf in operands:
        others = [other for other in operands if other is not leaf]
        for mark, axis, origin in _alike_draws(leaf, _differing(others)):
            yield Event("shared", site, axis, "", mark, rows=rows_of(others), origin=origin)


def side_by_side(leaf: Leaf, axes: Iterable[str], site: Site) -> Iterable[Event]:
    """Random numbers that are the same on all devices, returned under a spec as if each device had drawn its own."""
    for mark, axis, origin in _alike_draws(leaf, sorted(axes)):
        yield Event("stacked", site, axis, "", mark, origin=origin)


def _alike_draws(leaf: Leaf, axes: Sequence[str]) -> Iterator[tuple[Mark, str, Site | None]]:
    """Where an array that is the same along an axis was drawn, and where its key was derived."""
    derived = leaf.marked("derived", EVERY_AXIS)
    origin = derived.site if derived is not None else None
    for mark in sorted((m for m in leaf.marks if m.fact == "drawn"), key=lambda m: m.site.number):
        for axis in axes:
            if leaf.state(axis) in ALIKE:
                yield mark, axis, origin


# -- communicating


def reduced(leaf: Leaf, axes: Iterable[str], name: str, site: Site) -> tuple[Leaf, list[Event]]:
    """``psum``, ``pmean``, ``pmax``, ``pmin`` of one array over axes."""
    events: list[Event] = []
    marks = set(leaf.marks)
    states = dict(leaf.axes)
    for axis in axes:
        events += _events(leaf, axis, name, site)
        marks = {mark for mark in marks if mark.axis != axis}
        states[axis] = Held("invariant")
        if not leaf.literal and name in ("psum", "pmean"):
            marks.add(Mark("summed" if name == "psum" else "averaged", axis, site))
    return leaf_of(states.items(), leaf.default, frozenset(marks), leaf.literal, leaf.rows), events


def _events(leaf: Leaf, axis: str, name: str, site: Site) -> Iterable[Event]:
    if name not in ("psum", "pmean") or leaf.literal:
        return
    for fact in ("summed", "averaged", "transposed"):
        before = leaf.marked(fact, axis)
        if before is not None and leaf.state(axis) in ALIKE:
            yield Event("twice", site, axis, name, before, harmless=name == "pmean" and fact != "transposed")
            break
    magnified = leaf.marked("magnified", axis)
    if magnified is not None and name == "psum":
        yield Event("twice", site, axis, name, magnified, rows=leaf.rows)
    settled = leaf.marked("settled", axis) or leaf.marked("settled", EVERY_AXIS)
    if settled is not None and name == "psum" and leaf.state(axis) in ALIKE:
        yield Event("twice", site, axis, name, settled, rows=leaf.rows)
    added = leaf.marked("added", axis)
    if added is not None and name == "psum":
        yield Event("added", site, axis, name, added, rows=leaf.rows)
    bent = leaf.marked("bent", axis)
    if bent is not None:
        yield Event("bent", site, axis, name, bent, rows=leaf.rows)
    contracted = leaf.marked("contracted", axis)
    if contracted is not None and name == "pmean":
        yield Event("contracted", site, axis, name, contracted, rows=leaf.rows)
    ratio = leaf.marked("ratio", axis)
    if ratio is not None and name == "pmean":
        yield Event("ratio", site, axis, name, ratio, rows=leaf.rows)


def moved(leaf: Leaf, axes: Iterable[str], name: str, site: Site) -> Leaf:
    """A collective over axes that is not a reduction."""
    states = dict(leaf.axes)
    gone = set(axes)
    for axis in gone:
        held = leaf.held(axis)
        if name == "gather" or (name in ("cast", "permute") and held.state in ALIKE):
            states[axis] = Held("replicated", site if name == "gather" else None)
        elif name == "cast":
            states[axis] = held
        else:
            states[axis] = Held("varying", held.origin or site)
    kept = frozenset(mark for mark in leaf.marks if mark.axis not in gone)
    return leaf_of(states.items(), leaf.default, kept, literal=False, rows=leaf.rows)


def place_on_axis(axes: Iterable[str], site: Site) -> Leaf:
    """The result of ``axis_index``."""
    return leaf_of([(axis, Held("varying", site)) for axis in axes], "invariant", frozenset())


def drawn(key: Leaf, site: Site) -> Leaf:
    """Random numbers drawn from a key."""
    derived = frozenset(mark for mark in key.marks if mark.fact == "derived")
    return replace(key, marks=derived | {Mark("drawn", EVERY_AXIS, site)}, literal=False, layout=None, scalar=False)


def cut_out(whole: Leaf) -> Leaf:
    """An array of which a part is taken: each device may take its own part of random numbers that all have drawn."""
    return replace(whole, marks=frozenset(mark for mark in whole.marks if mark.fact != "drawn"))


def repeated(chosen: Leaf, collectives: Mapping[Site, tuple[str, frozenset[str]]], site: Site) -> Iterable[Event]:
    """Collectives that run depending on a predicate that differs between the devices that take part in them."""
    for made, (name, axes) in collectives.items():
        for axis in sorted(axes):
            held = chosen.held(axis)
            if held.state in DIFFERENT:
                yield Event(
                    "predicate", made, axis, name, Mark("repeated", axis, site), False, chosen.rows, held.origin
                )


# -- derivatives


def derivative(value: Leaf, loss: Leaf, site: Site, *, checked: bool, by_hand: bool) -> Leaf:
    """The derivative of a loss by a value.

    In a checked region the derivative by an invariant value is summed over the axes along which the loss varies. In an
    unchecked one it is this device's share, whatever reductions the loss went through: there, the transpose of `psum`
    is `psum`. ``by_hand``: arguments that are mapped over devices may be copies of one value.
    """
    axes: list[tuple[str, Held]] = []
    marks: set[Mark] = set()
    reduced_over = {mark.axis for mark in loss.marks if mark.fact in ("summed", "averaged")}
    for axis in sorted({*each_axis([value, loss]), *reduced_over}):
        state = value.state(axis)
        depends = loss.state(axis) in DIFFERENT
        ratio = loss.marked("ratio", axis)
        origin = loss.held(axis).origin
        summed = loss.marked("summed", axis) if not depends and not checked else None
        if summed is not None and (state in ALIKE or by_hand):
            marks.add(replace(summed, fact="magnified"))
        if checked and state == "invariant":
            # A derivative has the type of the value it is taken by, whatever the loss is.
            axes.append((axis, Held("invariant")))
            if depends:
                marks.add(Mark("transposed", axis, site))
            elif loss.state(axis) == "unknown":
                marks.add(Mark("settled", axis, site))
        elif state in ALIKE and (depends or axis in reduced_over):
            axes.append((axis, Held("partial", origin or site)))
            marks.add(Mark("gradient", axis, site))
        elif state in ALIKE:
            as_value = checked and loss.state(axis) == "invariant"
            axes.append((axis, Held("replicated" if as_value else loss.state(axis))))
        elif by_hand and state in (*DIFFERENT, "unknown"):
            axes.append((axis, Held("partial", origin or site)))
            marks.add(Mark("gradient", axis, site))
        else:
            axes.append((axis, Held(state, origin)))
        if ratio is not None:
            marks.add(ratio)
    default = together((value.default, loss.default))
    if checked and value.default == "invariant":
        default = "invariant"
        if loss.default == "unknown":
            marks.add(Mark("settled", EVERY_AXIS, site))
    return leaf_of(axes, default, frozenset(marks), rows=value.rows | loss.rows)
