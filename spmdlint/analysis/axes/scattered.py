"""Untiled `psum_scatter` along a dimension that has rows of data, and not one entry per device."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.axes.specs import Specs
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Values,
    certain,
    constant,
)
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

_SCATTERS = "jax.lax.psum_scatter"
_DEPTH = 4
_RESHAPES = ("jax.numpy.reshape", "jax.lax.reshape")
# Words in the names of sizes that are sizes of data.
_OF_DATA = frozenset("batch length len seq sequence tokens time steps height width heads vocab".split())


class UntiledScatter(Struct, frozen=True):
    """The call, and where the size of the dimension that it scatters is written."""

    site: Site
    size: Site


def untiled_scatters(specs: Specs) -> Iterator[UntiledScatter]:
    """Each such call once, if the size of the dimension is a product of data sizes."""
    told: set[Site] = set()
    for use in specs.applications:
        if use.applied.name != _SCATTERS or use.site in told or use.applied.arguments.open:
            continue
        known = specs.ev.knowledge.get(_SCATTERS)
        tiled, along = (specs.ev.argument(use.applied, name) for name in ("tiled", "scatter_dimension"))
        dimension = constant(along) if along is not None else None
        place = dimension.value if dimension is not None else 0 if along is None else None
        if known is None or not isinstance(place, int) or not _is_false(tiled):
            continue
        frame = specs.ev.free_frame(use.site.ref)
        call = frame.code.operations[use.site.number]
        given = passed(call, "x", known.positional) if isinstance(call, s.Call) else None
        size = _size(specs.ev, frame, given, place) if given is not None else None
        if size is not None and _is_product(specs.ev, *size, _DEPTH):
            told.add(use.site)
            yield UntiledScatter(use.site, Site(size[0].ref, size[1]))


def _is_false(tiled: Values | None) -> bool:
    known = constant(tiled) if tiled is not None else Constant(False)
    return known is not None and known.value is False


def _size(ev: Evaluator, frame: Frame, number: int, place: int) -> tuple[Frame, int] | None:
    """Where a size of an array that was just given a shape is written, here or in the function that returns it."""
    call = frame.code.operations[resolved(ev, frame, number)]
    if not isinstance(call, s.Call) or any(argument.star or argument.keyword for argument in call.arguments):
        return None
    callee = certain(ev.value(frame, call.function))
    method = frame.code.operations[call.function]
    given = [argument.value for argument in call.arguments]
    if isinstance(callee, External) and callee.name in _RESHAPES:
        return _entry(frame, given[1:], place)
    if isinstance(method, s.Attribute) and method.name == "reshape" and not isinstance(callee, FunctionValue):
        return _entry(frame, given, place)
    if isinstance(callee, FunctionValue):
        inner = ev.free_frame(callee.ref)
        returned = [each.value for _, each in inner.code.of_kind(s.Return) if each.value is not None]
        return _size(ev, inner, returned[0], place) if len(returned) == 1 and callee.ref != frame.ref else None
    return None


def _entry(frame: Frame, sizes: list[int], place: int) -> tuple[Frame, int] | None:
    if len(sizes) == 1 and isinstance(shape := frame.code.operations[frame.code.root_of(sizes[0])], s.Display):
        sizes = [] if shape.starred else list(shape.elements)
    return (frame, sizes[place]) if 0 <= place < len(sizes) else None


def _is_product(ev: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether a size is a product of data sizes, for example of a batch size and a length."""
    number = resolved(ev, frame, number)
    made = frame.code.operations[number]
    if not isinstance(made, s.Binary) or made.operator != "*" or not depth:
        return False
    return all(_is_of_data(ev, frame, side, depth - 1) for side in (made.left, made.right))


def _is_of_data(ev: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether a size is read from an array's shape, or named like one; any other may be the number of devices."""
    operation = frame.code.operations[number]
    name = operation.name if isinstance(operation, (s.Load, s.Attribute)) else ""
    if not _OF_DATA.isdisjoint(name.lower().split("_")):
        return True
    found = resolved(ev, frame, number)
    size = frame.code.operations[found]
    if isinstance(size, (s.Item, s.Subscript)):
        base = frame.code.operations[resolved(ev, frame, size.value if isinstance(size, s.Item) else size.base)]
        return isinstance(base, s.Attribute) and base.name == "shape"
    return _is_product(ev, frame, found, depth)
