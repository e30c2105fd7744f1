"""Bounds that are None: what they would bound goes on to its end."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Constant, Frame, Free, certain
from spmdlint.analysis.variance.origins import Origins

_NONE = Constant(None)


def has_no_end(origins: Origins, frame: Frame, bound: int) -> bool:
    """Whether a bound is None, or a parameter that is None by default and that no known call passes."""
    value = certain(origins.ev.value(frame, bound))
    if not isinstance(value, Free):
        return value == _NONE
    home = origins.ev.free_frame(value.ref)
    formal = next((each for each in home.code.function.formals if each.name == value.name), None)
    if formal is None or not formal.default or origins.reach.callers.get(value.ref):
        return False
    default = origins.ev.default(value.ref, home.outer, value.name)
    return default is not None and certain(default) == _NONE
