"""Axis names that are parameters: the same parameter names the same axis, whatever its value will be.

A function that makes a training step usually takes the name of its axis. Within it, a spec, a map and a collective that
are all passed that parameter mean one axis, which is represented by the parameter's name in angle brackets. The same
goes for a place in the names of a mesh that is a parameter: ``mesh.axis_names[0]``.
"""

from __future__ import annotations

from collections.abc import Set

from spmdlint.analysis.callgraph.arguments import Axes
from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.meshes import AXIS_NAMES
from spmdlint.analysis.evaluation.values import Applied, Collection, Free, Value, Values, certain


def symbol(value: Value | None) -> str | None:
    """The symbol for an axis name that a parameter holds; None if the value is not a parameter, or holds all names."""
    return f"<{value.name}>" if isinstance(value, Free) and not value.name.endswith(f".{AXIS_NAMES}") else None


def is_symbol(axis: str) -> bool:
    """Whether a name is the symbol of a parameter."""
    return axis.startswith("<")


def may_be_one(names: Set[str], held: Set[str]) -> bool:
    """Whether an axis named by a collective may be one that its value has under the other kind of name."""
    new, other = ({is_symbol(axis) for axis in left} for left in (names - held, held - names))
    return bool(new) and bool(other) and len(new | other) == 2


def axis_names(calls: Calls, values: Values) -> Axes:
    """The axis names that a value spells or holds."""
    found = calls.names(values)
    if not found.open:
        return found
    value = certain(values)
    held = symbol(value)
    if held is not None:
        return Axes(frozenset((held,)))
    if not isinstance(value, Collection) or value.open:
        return found
    inner = [axis_names(calls, element) for element in value.elements]
    return found if any(axes.open for axes in inner) else Axes(frozenset(n for axes in inner for n in axes.names))


def bound_axes(calls: Calls, applied: Applied) -> Axes:
    """The axes that a map binds inside its function."""
    known = calls.knowledge.get(applied.name)
    given = calls.ev.argument(applied, known.axes) if known is not None and known.axes is not None else None
    bound = calls.bound(applied)
    return axis_names(calls, given) if bound.open and given is not None else bound
