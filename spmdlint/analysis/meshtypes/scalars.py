"""Values without dimensions: what is summed over everything, a loss, and what is computed from such numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from spmdlint.analysis.evaluation.values import Arguments, Constant, Site, constant
from spmdlint.analysis.meshtypes.primitives import EVERY_AXIS, Event
from spmdlint.analysis.meshtypes.states import Layout, Leaf, Mark
from spmdlint.program import summary as s

_REDUCTIONS = frozenset(
    "sum mean max min amax amin prod any all std var median argmax argmin count_nonzero nansum nanmean logsumexp "
    "norm".split()
)
_MODULES = ("jax.numpy", "jax.nn", "jax.scipy.special", "jax.numpy.linalg")
_FALSE = Constant(False)


def is_reduction(name: str) -> bool:
    """Whether a library function reduces an array over all its dimensions, unless it is passed some of them."""
    module, _, function = name.rpartition(".")
    return function in _REDUCTIONS and module in _MODULES


def reduced_to_one(result: Leaf, given: Arguments, *, whole: bool) -> Leaf:
    """The result of such a function; ``whole``: it is passed no dimensions and no mask."""
    kept = given.keyword("keepdims")
    dimensionless = whole and not given.open and (kept is None or constant(kept) == _FALSE)
    return replace(result, scalar=True) if dimensionless else result


def computed_from(result: Leaf, operands: Sequence[Leaf], operations: Sequence[s.Operation]) -> Leaf:
    """The result of an operation on numbers without dimensions, of which some may be written out."""
    numbers = [o.scalar or _is_number(made) for o, made in zip(operands, operations, strict=True)]
    return replace(result, scalar=True) if all(numbers) and any(o.scalar for o in operands) else result


def _is_number(operation: s.Operation) -> bool:
    return isinstance(operation, s.Const) or (isinstance(operation, s.Attribute) and operation.name in ("size", "ndim"))


def dimensions_of_none(leaf: Leaf, claimed: Layout, spec: Site) -> Iterator[Event]:
    """A spec that has entries for the dimensions of a value without any."""
    if leaf.scalar and claimed:
        yield Event("scalar", spec, EVERY_AXIS, "", Mark("placed", EVERY_AXIS, spec))
