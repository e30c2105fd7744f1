"""Models Python's own functions and objects: `getattr`, `list`, `dict`, `range`, enums, records."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spmdlint.analysis.evaluation.comparing import is_instance
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    Arguments,
    ClassValue,
    Collection,
    Constant,
    DictionaryValue,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Value,
    Values,
    any_element,
    certain,
    constant,
    join,
    one,
    text,
)
from spmdlint.knowledge.elements import elements
from spmdlint.knowledge.files import names

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

MAX_ELEMENTS = 64
"""The most elements of a computed collection that are tracked individually."""
ENUMS = names("enums")
_SEQUENCES, _OBJECT_MAKERS = names("sequences"), names("object_makers")
_COPIERS = frozenset((*names("copiers"), *_OBJECT_MAKERS))
_FOLDED: dict[str, Callable[..., object]] = {f"builtins.{f.__name__}": f for f in (min, max, abs, int, divmod)}
COPIES = frozenset(("replace", "_replace"))
"""Methods of records that return a copy with different fields."""
FIELD_FUNCTIONS = names("field_functions")
_DEFAULT_FIRST = names("default_first")
_MAPPERS = frozenset(names("tree_mappers"))
_CALLABLE = ("jit", "map")


def call(ev: Evaluator, name: str, arguments: Arguments, frame: Frame) -> Values | None:
    """The result of a call of one of Python's own functions; None if nothing is known of it."""
    given = arguments.positional
    if name == "builtins.super":
        return ev.objects.super_value(frame, arguments)
    if name == "builtins.isinstance" and len(given) == 2:
        return is_instance(ev, given)
    if name == "builtins.getattr" and len(given) >= 2:
        wanted = text(given[1])
        if wanted is not None:
            return ev.each(given[0], lambda v: ev.attribute(v, wanted, frame))
    if name in _SEQUENCES and len(given) == 1:
        inner = certain(given[0])
        if isinstance(inner, Collection) and inner.kind != "set":
            return one(Collection(name.removeprefix("builtins."), inner.elements, inner.open, inner.each))
        elements = listed(given[0])
        if elements is not None and not isinstance(inner, Collection):
            return one(Collection(name.removeprefix("builtins."), tuple(elements)))
    if name == "builtins.sorted" and len(given) == 1:
        inner = certain(given[0])
        if isinstance(inner, Collection) and inner.open and inner.each is not None:
            return one(Collection("list", (), open=True, each=iterated(inner)))
    if name in _FOLDED and given and not arguments.open and not arguments.keywords:
        return _folded(_FOLDED[name], given)
    if name == "builtins.dict" and not arguments.open:
        return _table(arguments)
    if name in _COPIERS and given:
        return _copied(ev, name, given[0])
    if name == "dataclasses.replace" and len(given) == 1:
        return ev.each(given[0], lambda v: _replaced(ev, v, replace(arguments, positional=())))
    return tree_of_functions(ev, name, arguments, frame)


def _table(arguments: Arguments) -> Values | None:
    """The result of ``dict(...)``: from another dictionary or from pairs, and from keywords."""
    items: dict[object, Values] = {}
    copied = DictionaryValue(())
    for given in arguments.positional:
        value = certain(given)
        if isinstance(value, DictionaryValue):
            items.update(value.items)
            copied = value
            continue
        for pair in map(certain, listed(given) or (ANYTHING,)):
            entry = pair.elements if isinstance(pair, Collection) and pair.kind != "set" and not pair.open else ()
            key = constant(entry[0]) if len(entry) == 2 else None
            if key is None:
                return None
            items[key.value] = entry[1]
    items.update(arguments.keywords)
    return one(DictionaryValue(tuple(items.items()), copied.open, copied.each))


def _copied(ev: Evaluator, name: str, given: Values) -> Values | None:
    """An object like another one, a tree of the same leaves, or some object that is put together of its leaves."""
    if name in _OBJECT_MAKERS:
        return ANYTHING  # and none of the library's own
    return given if isinstance(certain(given), Instance) or leaf_function(ev, given) is not None else None


def _folded(function: Callable[..., object], given: tuple[Values, ...]) -> Values | None:
    """The result of a function on small integers that are known; None otherwise."""
    numbers = [known.value for known in map(constant, given) if known is not None]
    if len(numbers) != len(given) or not all(type(n) is int and abs(n) < 1 << 16 for n in numbers):
        return None
    try:
        result = function(*numbers)
    except Exception:  # not the linter's concern
        return None
    return one(Constant(result)) if type(result) is int else None


def method(ev: Evaluator, callee: Member, arguments: Arguments) -> Values | None:
    """The result of a method of a known dictionary or record; None if nothing is known of it."""
    copies = ev.knowledge.get(callee.name)
    if callee.name in COPIES or (copies is not None and copies.kind == "copy"):
        return _replaced(ev, callee.base, arguments)
    if isinstance(callee.base, DictionaryValue) and callee.name in ("items", "keys", "values"):
        pairs = [(one(Constant(key)), values) for key, values in callee.base.items]
        chosen = {"keys": 0, "values": 1}.get(callee.name)
        each = [one(Collection("tuple", pair)) if chosen is None else pair[chosen] for pair in pairs]
        further = callee.base.each if chosen != 0 else None
        further = one(Collection("tuple", (ANYTHING, further))) if further is not None and chosen is None else further
        known = callee.base.open and further is not None
        return one(
            Collection("list", tuple(each), callee.base.open, join(*each, further) if known and further else None)
        )
    if isinstance(callee.base, DictionaryValue) and callee.name == "get" and arguments.positional:
        key = constant(arguments.positional[0])
        missing = arguments.positional[1] if len(arguments.positional) > 1 else one(Constant(None))
        if key is None or callee.base.open:
            known = callee.base.each is not None or not callee.base.open
            return join(any_element(callee.base), missing) if known else ANYTHING
        return callee.base.get(key.value) or missing
    return None


def attribute(ev: Evaluator, base: Value, name: str) -> Values | None:
    """The value of an attribute of one of Python's own objects; None if nothing is known of it."""
    if isinstance(base, DictionaryValue) and name in ("get", "items", "keys", "values"):
        return one(Member(base, name))
    if isinstance(base, Applied) and base.name == "types.SimpleNamespace":
        known = base.arguments.keyword(name)
        return ANYTHING if known is None or ev.objects.patched.on_others(name, base.site.ref.path) else known
    return None


def enum_attribute(member: Instance, name: str) -> Values | None:
    """The ``.value`` of an enum member that :func:`enum_member` made."""
    if name == "value" and member.arguments is not None and member.arguments.positional:
        return member.arguments.positional[0]
    return None


def enum_member(cls: ClassValue, value: Value) -> Values:
    """The enum member with this value."""
    return one(Instance(cls, Arguments((one(value),))))


def default_of(values: Values, without: Values = ANYTHING) -> Values:
    """The default of a dataclass field that is written as a call of `field`; ``without`` if it has no default."""
    value = certain(values)
    if isinstance(value, Applied) and value.name in FIELD_FUNCTIONS:
        first = value.arguments.positional[:1] if value.name in _DEFAULT_FIRST else ()
        return value.arguments.keyword("default") or (first[0] if first else without)
    return values


def _replaced(ev: Evaluator, value: Value, arguments: Arguments) -> Values:
    """A copy of a record with different fields."""
    made = value.arguments if isinstance(value, Instance) else None
    if isinstance(value, Instance) and (made is None or made.open):
        return one(replace(value, arguments=None))  # of the same class
    if not isinstance(value, Instance) or made is None or arguments.open or arguments.positional:
        return ANYTHING
    names = ev.objects.field_names(value.cls) if made.positional else []
    if names is None or len(names) < len(made.positional):
        return ANYTHING
    given = (*zip(names, made.positional, strict=False), *made.keywords)
    kept = tuple((name, values) for name, values in given if arguments.keyword(name) is None)
    changed = tuple((name, _counted_on(values)) for name, values in arguments.keywords)
    return one(replace(value, arguments=Arguments((), (*kept, *changed))))


def _counted_on(values: Values) -> Values:
    """The value of a field in a copy: a number or flag may be anything, because a loop may change it copy by copy."""
    known = constant(values)
    return join(values, ANYTHING) if known is not None and isinstance(known.value, (bool, int, float)) else values


def listed(values: Values) -> list[Values] | None:
    """The elements that iterating over a value gives, in order; None unless all are known."""
    value = certain(values)
    if isinstance(value, Collection):
        return list(value.elements) if not value.open and value.kind != "set" else None
    if isinstance(value, Constant) and isinstance(value.value, str):
        return [one(Constant(letter)) for letter in value.value[:MAX_ELEMENTS]]
    if isinstance(value, Applied) and not value.arguments.open and not value.arguments.keywords:
        return _produced(value)
    return None


def iterated(base: Value) -> Values:
    """The possible values of one iteration over a value."""
    if isinstance(base, Collection):
        return join(*base.elements) if not base.open else base.each or ANYTHING
    if not isinstance(base, Applied) or base.arguments.open or base.arguments.keywords:
        return ANYTHING
    rounds = [ANYTHING if value is None else iterated(value) for value in map(certain, base.arguments.positional)]
    deed = elements().get(base.name)
    if deed == "zip":
        return one(Collection("tuple", tuple(rounds)))
    if deed == "enumerate" and rounds:
        return one(Collection("tuple", (ANYTHING, rounds[0])))
    return rounds[0] if deed == "reverse" and rounds else ANYTHING


def _produced(value: Applied) -> list[Values] | None:
    given = value.arguments.positional
    deed = elements().get(value.name)
    if deed == "range":
        bounds = [constant(each) for each in given]
        numbers = [b.value for b in bounds if b is not None and isinstance(b.value, int)]
        if len(numbers) != len(given) or not 1 <= len(numbers) <= 3 or numbers[2:] == [0]:
            return None
        found = list(islice(range(*numbers), MAX_ELEMENTS + 1))
        return [one(Constant(number)) for number in found] if len(found) <= MAX_ELEMENTS else None
    inner = [listed(each) for each in given]
    known = [each for each in inner if each is not None]
    if len(known) != len(inner) or not known:
        return None
    if deed == "zip":
        return [one(Collection("tuple", each)) for each in zip(*known, strict=False)]
    return None


def tree_of_functions(ev: Evaluator, name: str, arguments: Arguments, frame: Frame) -> Values | None:
    """A pytree whose leaves are functions, all the same or one per leaf of another tree; None if they are arrays.

    It is a dictionary with unknown keys, because the tree may have any structure.
    """
    function = certain(arguments.positional[0]) if name in _MAPPERS and arguments.positional else None
    if not isinstance(function, FunctionValue):
        return None
    inner = ev.entered_frame(function, Arguments(), frame.depth + 1, arrays=True)
    leaf = ev.returned(inner) if inner is not None else None
    return one(DictionaryValue((), open=True, each=leaf)) if leaf is not None and _is_callable(ev, leaf) else None


def leaf_function(ev: Evaluator, tree: Values) -> Values | None:
    """The function that every leaf of such a tree is."""
    value = certain(tree)
    leaf = value.each if isinstance(value, DictionaryValue) and value.open and not value.items else None
    return leaf if leaf is not None and _is_callable(ev, leaf) else None


def _is_callable(ev: Evaluator, values: Values) -> bool:
    value = certain(values)
    return isinstance(value, FunctionValue) or (isinstance(value, Applied) and ev.kind(value) in _CALLABLE)
