"""Values without dimensions: sums over everything, losses, variances, and what is computed from such numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Arguments,
    Collection,
    Constant,
    External,
    Frame,
    Site,
    certain,
    constant,
)
from spmdlint.analysis.meshtypes.primitives import EVERY_AXIS, Event
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import DIFFERENT, Layout, Leaf, Mark
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

_REDUCTIONS = frozenset(
    "sum mean max min amax amin prod any all std var median argmax argmin count_nonzero nansum nanmean logsumexp "
    "norm".split()
)
_MODULES = names("elementwise_modules")
_FALSE = Constant(False)
_OF_ARRAYS = names("array_modules")


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
    numbers = [
        o.scalar or isinstance(made, s.Const) or (isinstance(made, s.Attribute) and made.name in ("size", "ndim"))
        for o, made in zip(operands, operations, strict=True)
    ]
    return replace(result, scalar=True) if all(numbers) and any(o.scalar for o in operands) else result


def dimensions_of_none(leaf: Leaf, claimed: Layout, spec: Site) -> Iterator[Event]:
    """A spec that has entries for the dimensions of a value without any."""
    if leaf.scalar and claimed:
        yield Event("scalar", spec, EVERY_AXIS, "", Mark("placed", EVERY_AXIS, spec))


class _Statistic(Struct, frozen=True):
    """A statistic along the first dimension of a variable, which comes from these stores."""

    name: str
    variable: str
    stores: frozenset[int]


def with_spread(ev: Evaluator, scope: Scope, result: Leaf, site: Site) -> Leaf:
    """Mark a spread over rows as bent, if the mean of the same rows is taken as well: as statistics of data."""
    if site.ref != scope.frame.ref:
        return result
    made = _statistic(ev, scope.frame, site.number)
    if made is None or made.name not in ("std", "var"):
        return result
    mean = replace(made, name="mean")
    if not any(_statistic(ev, scope.frame, number) == mean for number, _ in scope.frame.code.of_kind(s.Call)):
        return result
    bent = {Mark("bent", axis, site) for axis, held in result.axes if held.state in DIFFERENT}
    return replace(result, marks=result.marks | bent)


def _statistic(ev: Evaluator, frame: Frame, number: int) -> _Statistic | None:
    call = frame.code.operations[number]
    callee = frame.code.operations[call.function] if isinstance(call, s.Call) else None
    if not isinstance(call, s.Call) or not isinstance(callee, s.Attribute) or callee.name not in ("mean", "std", "var"):
        return None
    positional = [each.value for each in call.arguments if each.keyword is None and not each.star]
    library = ev.callee(frame, call)
    if not isinstance(library, External) or library.name.rpartition(".")[0] not in _OF_ARRAYS:
        positional.insert(0, callee.base)
    axes = [*positional[1:2], *(each.value for each in call.arguments if each.keyword == "axis")]
    rows = frame.code.operations[positional[0]] if positional else None
    if not isinstance(rows, s.Load) or len(axes) != 1 or not _is_first(ev, frame, axes[0]):
        return None
    return _Statistic(callee.name, rows.name, ev.reaching(frame, positional[0], rows.name))


def _is_first(ev: Evaluator, frame: Frame, axis: int) -> bool:
    """Whether a statistic is over the first dimension, the one of the data's rows."""
    given = ev.value(frame, axis)
    several = certain(given)
    dimensions = several.elements if isinstance(several, Collection) else (given,)
    return any((known := constant(each)) is not None and known.value == 0 for each in dimensions)
