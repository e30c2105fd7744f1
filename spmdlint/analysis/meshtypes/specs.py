"""What a map says about its arguments and results, as mesh types."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Constant,
    DictionaryValue,
    Site,
    Value,
    Values,
    constant,
)
from spmdlint.analysis.meshtypes.states import (
    ALL_ALIKE,
    UNKNOWN,
    Held,
    Layout,
    Leaf,
    Many,
    Pullback,
    Record,
    Row,
    Type,
    either_type,
    flat,
    leaf_of,
)
from spmdlint.analysis.meshtypes.symbols import symbol


class Claim(Struct, frozen=True):
    """An output of a body under a spec, which says that it is the same along every axis that it does not name."""

    spec: Site
    named: frozenset[str]
    given: Leaf
    layout: Layout = ()


def spec_type(evaluator: Evaluator, values: Values) -> Type:
    """The type that specs give a value: varying along the axes they name, the same along all others."""
    return either_type([_one(evaluator, value) for value in values], told_apart=False) if values else UNKNOWN


def _one(evaluator: Evaluator, value: object) -> Type:
    if isinstance(value, Collection) and not value.open and value.kind != "set":
        return Row(tuple(spec_type(evaluator, element) for element in value.elements))
    if isinstance(value, Collection) and not value.elements and value.each is not None and value.kind != "set":
        return Many(spec_type(evaluator, value.each))
    if isinstance(value, DictionaryValue) and not value.open:
        return Record(tuple((key, spec_type(evaluator, each)) for key, each in value.items))
    named = names_of(evaluator, value)
    if named is None or not isinstance(value, Applied):
        return UNKNOWN
    leaf = leaf_of([(name, Held("varying", value.site)) for name in named], "invariant", frozenset())
    return replace(leaf, layout=layout_of(value))


def layout_of(spec: Applied) -> Layout:
    """The axes that a partition spec names for each dimension; it may leave out the last dimensions."""
    return tuple(frozenset(_spelled(entry) or ()) for entry in spec.arguments.positional)


def names_of(evaluator: Evaluator, value: object) -> frozenset[str] | None:
    """The axes that a partition spec names; None for anything else, or if it is not fully known or has keywords."""
    if not isinstance(value, Applied) or value.arguments.open or value.arguments.keywords:
        return None
    known = evaluator.knowledge.get(value.name)
    if known is None or known.kind != "spec":
        return None
    found: set[str] = set()
    for entry in value.arguments.positional:
        names = _spelled(entry)
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _spelled(values: Values) -> set[str] | None:
    if len(values) != 1:
        return None
    value = next(iter(values))
    if isinstance(value, Constant):
        return {value.value} if isinstance(value.value, str) else set() if value.value is None else None
    held = symbol(value)
    if held is not None:
        return {held}
    if isinstance(value, Collection) and not value.open:
        parts = [_spelled(element) for element in value.elements]
        return None if any(p is None for p in parts) else {name for part in parts if part is not None for name in part}
    return None


def rows_type(values: Values | None, axis: str, site: Site) -> Type:
    """The type that `in_axes` gives arguments: one row per device, or the same value for all if it is None."""
    each_row = leaf_of([(axis, Held("varying", site))], "invariant", frozenset())
    if values is None:
        return each_row
    if len(values) != 1:
        return UNKNOWN
    value = next(iter(values))
    if isinstance(value, Collection) and not value.open:
        return Row(tuple(rows_type(element, axis, site) for element in value.elements))
    known = constant(values)
    if known is not None:
        return ALL_ALIKE if known.value is None else each_row
    return leaf_of([(axis, Held("unknown"))], "invariant", frozenset())


def prefix(given: Type, count: int) -> list[Type]:
    """The types of up to ``count`` parameters, from a type that may cover all of them; the rest have defaults."""
    if isinstance(given, Row):
        return list(given.elements[:count])
    return [given if isinstance(given, Leaf) else UNKNOWN] * count


def claims(evaluator: Evaluator, values: Values, given: Type) -> list[Claim]:
    """The claims of `out_specs` about what a body returns, as far as both are known."""

    def of_spec(value: Value, part: Type) -> list[Claim]:
        named = names_of(evaluator, value)
        if named is None or not isinstance(value, Applied):
            return []
        return [Claim(value.site, named, leaf, layout_of(value)) for leaf in _under(part)]

    return _claims(values, given, of_spec)


def claims_of_axes(values: Values, given: Type, site: Site) -> list[Claim]:
    """The claims of `out_axes`, made at a site: an entry of None means one value for all devices."""

    def of_axis(value: Value, part: Type) -> list[Claim]:
        return [Claim(site, frozenset(), leaf) for leaf in _under(part)] if value == Constant(None) else []

    return _claims(values, given, of_axis)


def _claims(values: Values, given: Type, of_one: Callable[[Value, Type], list[Claim]]) -> list[Claim]:
    """The claims of each entry of a pytree about its part of the result."""
    if len(values) != 1:
        return []
    value = next(iter(values))
    if isinstance(value, Collection) and not value.open and value.kind != "set":
        if isinstance(given, Row) and len(given.elements) != len(value.elements):
            return []
        return [
            claim
            for position, element in enumerate(value.elements)
            for claim in _claims(element, _element(given, position), of_one)
        ]
    if isinstance(value, DictionaryValue):
        return [c for key, each in value.items for c in _claims(each, _at(given, key), of_one)]
    return of_one(value, given)


def _element(given: Type, position: int) -> Type:
    return given.elements[position] if isinstance(given, Row) else UNKNOWN if isinstance(given, Leaf) else flat(given)


def _at(given: Type, key: object) -> Type:
    return given.get(key) or UNKNOWN if isinstance(given, Record) else UNKNOWN


def _under(given: Type) -> list[Leaf]:
    if isinstance(given, (Leaf, Pullback)):
        return [flat(given)]
    if isinstance(given, Many):
        return _under(given.element)
    if isinstance(given, Row):
        return [leaf for element in given.elements for leaf in _under(element)]
    return [leaf for _, each in given.items for leaf in _under(each)]
