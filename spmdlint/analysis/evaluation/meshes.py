"""The axis names of a mesh object: those it is made with, or the places of unknown ones (``mesh.axis_names[0]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import Applied, Collection, Constant, Free, Value, Values, constant, one

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

AXIS_NAMES = "axis_names"


def axis_names_of(ev: Evaluator, mesh: Value) -> Values | None:
    """The value of ``mesh.axis_names``; None if this is no mesh that is known, and no parameter or field either.

    The names of a mesh that is a parameter are not known, but they are the same ones wherever they are read.
    """
    if isinstance(mesh, Free):
        return one(Free(mesh.ref, f"{mesh.name}.{AXIS_NAMES}"))
    known = ev.knowledge.get(mesh.name) if isinstance(mesh, Applied) else None
    if known is None or known.kind != "mesh" or known.axes is None or not isinstance(mesh, Applied):
        return None
    given = ev.argument(mesh, known.axes)
    single = constant(given) if given is not None else None
    if single is not None and isinstance(single.value, str):  # a mesh with one axis may be given its name alone
        return one(Collection("tuple", (one(Constant(single.value)),)))
    return given


def name_at(names: Free, index: object) -> Values | None:
    """One of the axis names of such a mesh, counted from the front; None if it is not certain which one it is."""
    if names.name.endswith(f".{AXIS_NAMES}") and type(index) is int and index >= 0:
        return one(Free(names.ref, f"{names.name}[{index}]"))
    return None
