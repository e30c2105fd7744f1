"""Products and sums over a dimension that is split over the devices: each device has a summand of the whole.

Specs say which dimensions of an argument are split over which axes, and elementwise operations leave them as they are.
A product with such an argument is partial along an axis if the dimension that it sums over is split there, as in the
second matrix of a tensor-parallel layer; so is a sum or mean over such a dimension.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Collection, Constant, Site, Values, certain, constant, text
from spmdlint.analysis.meshtypes.states import ALIKE, Held, Layout, Leaf, Mark, leaf_of
from spmdlint.program import summary as s

_EQUATION = re.compile(r"[A-Za-z]+(,[A-Za-z]+)*->[A-Za-z]*")
_ELEMENTWISE = frozenset(
    "abs absolute sqrt rsqrt exp expm1 log log1p log2 log10 square sign tanh sigmoid relu gelu silu swish softplus "
    "maximum minimum clip where astype".split()
)
"""Functions and methods whose result has the dimensions of their arrays, by their bare names."""
_TRANSPOSED = frozenset(("T", "mT", "transpose", "swapaxes", "moveaxis"))


def over_matrices(left: Leaf, right: Leaf) -> frozenset[str]:
    """The axes over which ``left @ right`` sums parts: they split the columns of the one or the rows of the other."""
    first, second = left.layout, right.layout
    columns = first[-1] if first is not None and len(first) > 1 else frozenset()
    rows = second[-2 if len(second) > 1 else 0] if second else frozenset()
    return columns | rows


def over_letters(equation: Values, operands: Sequence[Leaf]) -> frozenset[str]:
    """The same for ``einsum``: a letter of the operands that the result lacks, and that is no batch dimension.

    A letter that comes first in all operands numbers examples: what is summed over them is averaged as often as not.
    """
    terms, result = _terms(equation, operands)
    found: set[str] = set()
    for term, operand in zip(terms, operands, strict=False):
        if operand.layout is None or len(operand.layout) != len(term):
            continue
        for letter, axes in zip(term, operand.layout, strict=True):
            if letter not in result and not all(other[0] == letter for other in terms):
                found |= axes
    return frozenset(found)


def layout_of_letters(equation: Values, operands: Sequence[Leaf]) -> Layout | None:
    """How the result of ``einsum`` is split; None if that is not known."""
    terms, result = _terms(equation, operands)
    if not terms:
        return None
    split: dict[str, frozenset[str]] = {}
    for term, operand in zip(terms, operands, strict=True):
        if _is_whole(operand):
            continue
        if operand.layout is None or len(operand.layout) > len(term):
            return None
        for letter, axes in zip(term, operand.layout, strict=False):  # a spec may leave out the last dimensions
            split[letter] = split.get(letter, frozenset()) | axes
    return tuple(split.get(letter, frozenset()) for letter in result)


def _terms(equation: Values, operands: Sequence[Leaf]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; no terms if the equation is not known, or not written in full."""
    letters = (text(equation) or "").replace(" ", "")
    given, _, result = letters.partition("->")
    terms = given.split(",")
    return (terms, result) if _EQUATION.fullmatch(letters) and len(terms) == len(operands) else ([], "")


def laid_out(result: Leaf, operands: Sequence[Leaf]) -> Leaf:
    """The result of an elementwise operation, with the dimensions of those operands that are split."""
    layouts = {operand.layout for operand in operands if not _is_whole(operand)}
    return replace(result, layout=layouts.pop()) if len(layouts) == 1 else result


def is_elementwise(name: str) -> bool:
    """Whether a function or method, by its name, leaves the dimensions of its arrays as they are."""
    return name.rpartition(".")[2] in _ELEMENTWISE


def reduced(result: Leaf, operand: Leaf, over: Values | None, keeps: Values | None, site: Site) -> Leaf:
    """The result of a sum or mean over some dimensions, counted from the first; partial where they are split."""
    numbers = _numbers(over)
    if operand.layout is None or numbers is None:
        return result
    split = frozenset().union(*(axes for number, axes in enumerate(operand.layout) if number in numbers))
    left = tuple(axes for number, axes in enumerate(operand.layout) if number not in numbers)
    return replace(result, axes=_partial(result, split, site), layout=left if keeps is None else None)


def _numbers(values: Values | None) -> frozenset[int] | None:
    """The dimensions that an argument lists; None if they are not known, or counted from the last."""
    value = certain(values) if values is not None else None
    listed = (
        [constant(each) for each in value.elements] if isinstance(value, Collection) and not value.open else [value]
    )
    numbers = [known.value for known in listed if isinstance(known, Constant) and type(known.value) is int]
    return frozenset(numbers) if len(numbers) == len(listed) and all(number >= 0 for number in numbers) else None


def _is_whole(operand: Leaf) -> bool:
    """Whether an operand is split over nothing: a constant, or a value that is the same on all devices."""
    return operand.literal or (operand.default in ALIKE and all(held.state in ALIKE for _, held in operand.axes))


def is_turned(operations: Sequence[s.Operation], number: int) -> bool:
    """Whether an operand is a transposed array, as in ``x.T @ y``: that sums over examples."""
    operation = operations[number]
    if isinstance(operation, s.Call):
        operation = operations[operation.function]
    return isinstance(operation, (s.Attribute, s.Load)) and operation.name in _TRANSPOSED


def summand(product: Leaf, axes: frozenset[str], site: Site) -> Leaf:
    """The type of a product that sums over a dimension which is split over some axes."""
    split = {axis for axis in axes if product.state(axis) == "varying"}
    if not split:
        return product
    states = _partial(product, split, site)
    marks = product.marks | {Mark("contracted", axis, site) for axis in split}
    return leaf_of(states, product.default, marks, product.literal, product.rows)


def _partial(leaf: Leaf, axes: Set[str], site: Site) -> tuple[tuple[str, Held], ...]:
    """The states of a leaf, with a share along each of these axes along which it varies."""
    return tuple(
        (axis, Held("partial", site) if axis in axes and held.state == "varying" else held) for axis, held in leaf.axes
    )
