"""The shapes of arrays that the program writes out: ``np.zeros((4, 2))`` has the shape (4, 2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Collection, Constant, External, Frame, Value
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.units import units
from spmdlint.program import summary as s

Shape: TypeAlias = tuple[int, ...]

_SHOWN = 4
"""The most shapes that are told."""
_SHAPE = (0, "shape")
"""Where functions take a shape that make an array of nothing else: their first argument, or the keyword."""


def written_shapes(ev: Evaluator, frame: Frame, number: int) -> tuple[Shape, ...]:
    """The shapes that an array may have, each written out; none if one of them is not known."""
    number = resolved(ev, frame, number)
    made = frame.code.operations[number]
    if isinstance(made, s.Load):
        stores = [frame.code.operations[n] for n in sorted(ev.reaching(frame, number, made.name))]
        return _all_of([_made(ev, frame, each.value) if isinstance(each, s.Store) else () for each in stores])
    if isinstance(made, s.IfExp):
        return _all_of([_made(ev, frame, each) for each in (made.body, made.orelse)])
    return _made(ev, frame, number)


def several_shapes(ev: Evaluator, frame: Frame, numbers: Sequence[int | None]) -> str | None:
    """The shapes that several arrays have, in words; None if one is not known, or all have one shape."""
    return in_words(_all_of([() if number is None else _made(ev, frame, number) for number in numbers]))


def in_words(shapes: Sequence[Shape]) -> str | None:
    """Several shapes in words; None if it is no more than one, or too many to read."""
    return " or ".join(map(str, shapes)) if 1 < len(shapes) <= _SHOWN else None


def _all_of(parts: Sequence[tuple[Shape, ...]]) -> tuple[Shape, ...]:
    """All shapes of some arrays, each once; none if those of one are not known."""
    return tuple(dict.fromkeys(shape for shapes in parts for shape in shapes)) if all(parts) else ()


def _made(ev: Evaluator, frame: Frame, number: int) -> tuple[Shape, ...]:
    """The shapes of an array that a call makes of constants."""
    made = frame.code.operations[resolved(ev, frame, number)]
    callee = ev.callee(frame, made)
    if not isinstance(made, s.Call) or not isinstance(callee, External) or units().rows.get(callee.name) != _SHAPE:
        return ()
    given = [each for each in made.arguments if each.keyword in (None, "shape")]
    if not given or any(each.star for each in made.arguments):
        return ()
    return _all_of([_sizes(value) for value in ordered(ev.value(frame, given[0].value))])


def _sizes(shape: Value) -> tuple[Shape, ...]:
    """The shapes for a number, or a tuple of numbers, of which each may have several values."""
    values = shape.elements if isinstance(shape, Collection) and not shape.open else (frozenset((shape,)),)
    sizes = [[v.value for v in ordered(each) if isinstance(v, Constant) and type(v.value) is int] for each in values]
    if any(len(known) < len(each) for known, each in zip(sizes, values, strict=True)):
        return ()
    return tuple(product(*sizes)) if prod(map(len, sizes)) <= _SHOWN else ()
