"""Products that sum over a dimension that is split over the devices: each device has a summand of the whole.

Specs say which dimensions of an argument are split over which axes. A product with such an argument is partial along an
axis if the dimension that it sums over is split there, as in the second matrix of a tensor-parallel layer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Site, Values, constant
from spmdlint.analysis.meshtypes.states import Held, Leaf, Mark, leaf_of
from spmdlint.program import summary as s

_EQUATION = re.compile(r"[A-Za-z]+(,[A-Za-z]+)*->[A-Za-z]*")
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
    known = constant(equation)
    text = known.value.replace(" ", "") if known is not None and isinstance(known.value, str) else ""
    if not _EQUATION.fullmatch(text):
        return frozenset()
    given, _, result = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(operands):
        return frozenset()
    found: set[str] = set()
    for term, operand in zip(terms, operands, strict=True):
        if operand.layout is None or len(operand.layout) != len(term):
            continue
        for letter, axes in zip(term, operand.layout, strict=True):
            if letter not in result and not all(other[0] == letter for other in terms):
                found |= axes
    return frozenset(found)


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
    states = [(axis, Held("partial", site) if axis in split else held) for axis, held in product.axes]
    marks = product.marks | {Mark("contracted", axis, site) for axis in split}
    return leaf_of(states, product.default, marks, product.literal, product.rows)


def without_layout(leaf: Leaf) -> Leaf:
    """A leaf whose dimensions are no longer those of the argument."""
    return replace(leaf, layout=None) if leaf.layout is not None else leaf
