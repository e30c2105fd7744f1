"""Evaluates `isinstance` of known values: which class they belong to, as far as that decides a branch."""

from __future__ import annotations

import collections.abc
import numbers
import types
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import (
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    External,
    FunctionValue,
    Instance,
    Value,
    Values,
    certain,
    one,
)

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

_BUILT_IN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
_ABSTRACT = ("Callable", "Collection", "Iterable", "Iterator", "Mapping", "MutableMapping", "Sequence", "Set", "Sized")
_HOMES = ("collections.abc", "typing")
_CLASSES: dict[str, type] = {
    **{f"builtins.{cls.__name__}": cls for cls in _BUILT_IN},
    **{f"{home}.{name}": getattr(collections.abc, name) for home in _HOMES for name in _ABSTRACT},
    **{f"numbers.{name}": getattr(numbers, name) for name in ("Number", "Real", "Integral")},
}
_MADE_AS: dict[str, type] = {"tuple": tuple, "list": list, "set": set}
# Bases that add nothing: an object is only what its own class makes it.
_BARE = frozenset(("builtins.object", "abc.ABC", "typing.Generic"))


def is_instance(ev: Evaluator, given: tuple[Values, ...]) -> Values | None:
    """The result of ``isinstance(value, classes)``; None if it is not known."""
    value, asked = certain(given[0]), certain(given[1])
    if value is None or asked is None:
        return None
    several = isinstance(asked, Collection) and asked.kind == "tuple" and not asked.open
    classes = [certain(each) for each in asked.elements] if isinstance(asked, Collection) and several else [asked]
    answers = [_is(ev, value, cls) for cls in classes]
    if True in answers:
        return one(Constant(True))
    return one(Constant(False)) if all(answer is False for answer in answers) else None


def _is(ev: Evaluator, value: Value, cls: Value | None) -> bool | None:
    if isinstance(cls, External):
        known, made = _CLASSES.get(cls.name), _type_of(value)
        if known is not None and made is not None:
            return issubclass(made, known)
        return False if known in _BUILT_IN and _is_bare(ev, value) else None
    if not isinstance(cls, ClassValue):
        return None
    # An object known only by an annotation may belong to a subclass, or be None.
    if isinstance(value, Instance) and value.arguments is not None and cls in ev.objects.lineage(value.cls):
        return True
    surely_another = _type_of(value) is not None or _is_bare(ev, value)
    return False if surely_another and _is_class_alone(ev, cls) else None


def _type_of(value: Value) -> type | None:
    """The built-in Python class of a value; None if it has none."""
    if isinstance(value, Constant):
        return type(value.value)
    if isinstance(value, Collection):
        return _MADE_AS.get(value.kind)
    if isinstance(value, DictionaryValue):
        return dict
    return types.FunctionType if isinstance(value, FunctionValue) else None


def _is_bare(ev: Evaluator, value: Value) -> bool:
    """Whether the value is an object made here, of a class whose bases are all classes of the project."""
    return isinstance(value, Instance) and value.arguments is not None and _is_class_alone(ev, value.cls)


def _is_class_alone(ev: Evaluator, cls: ClassValue) -> bool:
    """Whether all bases of a class are known and are of the project; a metaclass may answer as it likes."""
    for each in ev.objects.lineage(cls):
        made = each.outer.code.made_classes.get(each.ref.index) if each.outer is not None else None
        if made is None or made.keywords or len(made.bases) != len(ev.objects.bases(each)):
            return False
    return _BARE.issuperset(ev.objects.library_bases(cls))
