"""Evaluates comparisons of constants, of members of one enum, of library objects with None, and `isinstance`."""

from __future__ import annotations

import collections.abc
import numbers
import types
from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation import folding
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    Arguments,
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
    constant,
    one,
)
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.files import names
from spmdlint.knowledge.units import Unit, units

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator
    from spmdlint.analysis.evaluation.values import Frame
    from spmdlint.program import summary as s

_ORDERS = {">": True, ">=": True, "<": False, "<=": False}
_MIRRORED = {"is": "is", "is not": "is not", "==": "==", "!=": "!=", ">": "<", "<": ">", "<=": ">=", ">=": "<="}
"""The operator that asks the same with the sides swapped."""
_ON_SEVERAL = {
    ("==", 1): False, ("!=", 1): True, (">", 1): True, ("<=", 1): False, ("<", 2): False, (">=", 2): True,
}  # fmt: skip
"""What comparing a number of processes or devices above one with a number gives."""
_OLDEST, _NEXT = (3, 10), (4,)
"""The oldest Python that the oldest supported JAX runs on, and the first that none does."""
_SAME = {"is": True, "==": True, "is not": False, "!=": False}


def compared(ev: Evaluator, frame: Frame, operation: s.Compare) -> Values:
    """The result of a comparison, or anything if it is not known."""
    if len(operation.operators) != 1:
        return ANYTHING
    left, right = (ev.value(frame, operand) for operand in operation.operands)
    operator = operation.operators[0]
    if operator in ("is", "is not") and _is_made(ev, left) and constant(right) == Constant(None):
        return one(Constant(operator == "is not"))
    newer = _newer_python(left, right) if operator in _ORDERS else None
    if newer is not None:
        return one(Constant(newer is _ORDERS[operator]))
    several = compared_counts(operator, left, right, "process")
    if several is not None:
        return one(Constant(several))
    same = _same_member(ev, left, right) if operator in _SAME else None
    if same is not None:
        return one(Constant(same is _SAME[operator]))
    return folding.binary(operator, left, right)


def _newer_python(left: Values, right: Values) -> bool | None:
    """Whether every Python that JAX runs on is newer than a version that is written out, or none is."""
    running, written = certain(left), certain(right)
    if running != External("sys.version_info") or not isinstance(written, Collection) or written.open:
        return None
    numbers = [constant(each) for each in written.elements]
    version = tuple(number.value for number in numbers if number is not None and isinstance(number.value, int))
    if not version or len(version) < len(numbers):
        return None
    return True if version <= _OLDEST else False if version >= _NEXT else None


def compared_counts(operator: str, left: Values, right: Values, *of: Unit) -> bool | None:
    """The answer to a question for a job of one process, or device: the linter judges jobs of several."""
    for count, number, asked in ((left, right, operator), (right, left, _MIRRORED.get(operator, ""))):
        than, unit = constant(number), counted(count)
        if unit in of and than is not None:
            return _ON_SEVERAL.get((asked, than.value)) if type(than.value) is int else None
        if unit == "device" and counted(number) == "local":  # which are as many in one process
            return _ON_SEVERAL.get((asked, 1))
    return None


def counted(count: Values) -> Unit | None:
    """What a number is a count of, also as the length of a list."""
    value = certain(count)
    counts = isinstance(value, Applied) and elements().get(value.name) == "length"
    given = value.arguments.positional if isinstance(value, Applied) and counts else ()
    listed = certain(given[0]) if given else value
    if not isinstance(listed, Applied) or listed.arguments != Arguments():  # such as those of another backend
        return None
    return (units().lists if given else units().counts).get(listed.name)


def _is_made(ev: Evaluator, values: Values) -> bool:
    """Whether the value is certainly an object that a library made, and not None: a map, a mesh, a sharding."""
    value = certain(values)
    known = ev.knowledge.get(value.name) if isinstance(value, Applied) else None
    return known is not None and known.kind not in (None, "apply", "forward")


def _same_member(ev: Evaluator, left: Values, right: Values) -> bool | None:
    """Whether two members of one enum, with values written in the source, are the same; None if not known."""
    one_member, other = certain(left), certain(right)
    if not isinstance(one_member, Instance) or not isinstance(other, Instance) or one_member.cls != other.cls:
        return None
    if not ev.objects.is_enum(other.cls) or one_member.arguments is None or other.arguments is None:
        return None
    values = [constant(given) for given in (*one_member.arguments.positional, *other.arguments.positional)]
    return values[0] == values[1] if len(values) == 2 and None not in values else None


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
_BARE = frozenset(names("bare_bases"))


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
