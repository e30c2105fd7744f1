"""A fixed order for the values of a set, the same in every run.

Sets are ordered by hashes, which differ between processes. Wherever the first of several values decides what is
reported, or which frames are made before their number is limited, the values are taken in this order.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.evaluation.values import (
    Applied,
    Arguments,
    Called,
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Free,
    FunctionValue,
    Instance,
    Member,
    ModuleValue,
    Namespace,
    Site,
    SuperValue,
    Value,
    Values,
)
from spmdlint.program.link import FunctionRef

_DEPTH = 4
"""The depth of nested values that are compared to order two values."""


def ordered(values: Values) -> Iterable[Value]:
    """The values of a set in a fixed order."""
    if len(values) < 2:
        return values
    outside = {value: _spelled(value, 1) for value in values}
    if len(set(outside.values())) == len(outside):
        return sorted(values, key=outside.__getitem__)
    return sorted(values, key=_spelled)


def _spelled(value: Value, depth: int = _DEPTH) -> str:
    kind = type(value).__name__
    if depth == 0:
        return kind
    return f"{kind} {_parts(value, depth - 1)}"


def _parts(value: Value, depth: int) -> str:
    if isinstance(value, Constant):
        return f"{value.kind} {value.value!r}"
    if isinstance(value, External):
        return value.name
    if isinstance(value, (FunctionValue, ClassValue)):
        receiver = value.receiver if isinstance(value, FunctionValue) else None
        bound = "" if receiver is None else _spelled(receiver, depth)
        return f"{_ref(value.ref)} {value.outer.serial if value.outer is not None else ''} {bound}"
    if isinstance(value, Instance):
        return f"{_spelled(value.cls, depth)} {_arguments(value.arguments, depth)}"
    if isinstance(value, SuperValue):
        return f"{_spelled(value.cls, depth)} {_spelled(value.receiver, depth)}"
    if isinstance(value, Collection):
        return f"{value.kind} {value.open} {_each(value.elements, depth)}"
    if isinstance(value, DictionaryValue):
        each = "" if value.each is None else _set(value.each, depth)
        return f"{value.open} {each} " + " ".join(f"{key!r} {_set(values, depth)}" for key, values in value.items)
    if isinstance(value, Applied):
        return f"{value.name} {_site(value.site)} {_arguments(value.arguments, depth)}"
    if isinstance(value, Member):
        return f"{value.name} {_spelled(value.base, depth)}"
    if isinstance(value, Called):
        return f"{_site(value.site)} {_spelled(value.function, depth)}"
    if isinstance(value, Free):
        return f"{_ref(value.ref)} {value.name}"
    if isinstance(value, Namespace):
        return value.dotted
    return str(value.path) if isinstance(value, ModuleValue) else ""


def _arguments(arguments: Arguments | None, depth: int) -> str:
    if arguments is None:
        return ""
    keywords = " ".join(f"{name} {_set(values, depth)}" for name, values in arguments.keywords)
    return f"{arguments.open} {_each(arguments.positional, depth)} {keywords}"


def _each(sets: Iterable[Values], depth: int) -> str:
    return " ".join(_set(values, depth) for values in sets)


def _set(values: Values, depth: int) -> str:
    return "{" + " ".join(sorted(_spelled(value, depth) for value in values)) + "}"


def _site(site: Site) -> str:
    return f"{_ref(site.ref)} {site.number}"


def _ref(ref: FunctionRef) -> str:
    return f"{ref.path} {ref.index}"
