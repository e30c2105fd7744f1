"""The axis names of a mesh object: those it is made with, or the places of unknown ones (``mesh.axis_names[0]``).

Also the fields that hold axis names, judging by their own name (``config.data_axis``): one that is unknown still means
the same axes wherever it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    Collection,
    Constant,
    Free,
    Instance,
    Value,
    Values,
    certain,
    one,
    text,
)
from spmdlint.knowledge.files import names

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

AXIS_NAMES = "axis_names"
_WORDS = frozenset(("axis", "axes"))
_COLLECTORS = names("sequences")


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
    single = text(given) if given is not None else None
    if single is not None:  # a mesh with one axis may be given its name alone
        return one(Collection("tuple", (one(Constant(single)),)))
    return given


def name_at(names: Free, index: object) -> Values | None:
    """One of the axis names of such a mesh, counted from the front; None if it is not certain which one it is."""
    if names.name.endswith(f".{AXIS_NAMES}") and type(index) is int and index >= 0:
        return one(Free(names.ref, f"{names.name}[{index}]"))
    return None


def axes_held(owner: Value, name: str, found: Values) -> Values:
    """What a field of an object holds. If that is unknown, a field for axes stands for them, as a parameter does."""
    words = name.lower().removesuffix("_name").removesuffix("_names").split("_")
    if words[-1] not in _WORDS or not _is_unknown(found):
        return found
    if isinstance(owner, Free):
        return one(Free(owner.ref, f"{owner.name}.{name}"))
    return one(Free(owner.cls.ref, name)) if isinstance(owner, Instance) else found


def _is_unknown(found: Values) -> bool:
    """Whether nothing is known of the names in a value: ``tuple(name for name in mesh.axis_names if ...)``, say."""
    value = certain(found)
    given = value.arguments.positional if isinstance(value, Applied) and value.name in _COLLECTORS else ()
    return found == ANYTHING or given == (ANYTHING,)
