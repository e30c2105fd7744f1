"""Standard deviations and variances of this device's rows: their mean is not that of all rows."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Collection, External, Frame, Site, certain, constant
from spmdlint.analysis.meshtypes.scopes import Scope
from spmdlint.analysis.meshtypes.states import DIFFERENT, Leaf, Mark
from spmdlint.program import summary as s

_MODULES = ("jax.numpy", "numpy")


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
    if not isinstance(library, External) or library.name.rpartition(".")[0] not in _MODULES:
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
