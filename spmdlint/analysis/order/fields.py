"""Lists that objects keep and methods of their classes fill: their order is the order in which they are filled."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.fillings import in_loops, methods_of
from spmdlint.analysis.evaluation.receivers import is_own_field, is_receiver
from spmdlint.analysis.evaluation.values import Frame, Instance
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_APPENDING = frozenset(("append", "appendleft"))


def order_of_field(origins: Origins, frame: Frame, number: int, text: str) -> Reason | None:
    """Why the order of ``x.field``, or of a list in it, ``x.field[i]``, has the property: it is filled in it."""
    read = frame.code.operations[number]
    inside = isinstance(read, s.Subscript)
    field = frame.code.operations[read.base] if isinstance(read, s.Subscript) else read
    if not isinstance(field, s.Attribute):
        return None
    methods = list(dict.fromkeys(methods_of(origins.ev, frame, field.base)))
    codes = {method: origins.ev.code(method) for method in methods}
    ordered = any(_orders(code, field.name, inside=inside) for code in codes.values())
    objects = origins.ev.objects
    owners = [value.cls for value in origins.ev.value(frame, field.base) if isinstance(value, Instance)]
    if ordered or any(objects.patched.on(cls, field.name) for cls in owners):
        return None
    puts = {method: _puts(code, field.name, inside=inside) for method, code in codes.items()}
    filling = {codes[method].function.name for method in methods if puts[method]}
    for method, code in codes.items():
        where = origins.frame_of(method)
        extending = [] if inside else _extends(code, field.name)
        putting = [*puts[method], *_helped(code, filling)]
        for filled, source in (*extending, *in_loops(origins.ev, where, putting)):
            found = origins.of(where, source)
            if found is not None:
                found = origins.step(where, filled, text.format(name=repr(field.name)), found)
                return origins.step(frame, number, f"{field.name!r} is read here", found)
    return None


def _extends(code: Code, name: str) -> list[tuple[int, int]]:
    """The places where a method puts all elements of an iterable into a field, each with that iterable."""
    return [(n, put) for n, extended, put in code.extensions if is_own_field(code.function, extended, name)]


def _puts(code: Code, name: str, *, inside: bool) -> list[int]:
    """The places where a method appends an element to a field, or to a list in it."""
    return [
        number
        for number, call in code.of_kind(s.Call)
        if isinstance(method := code.operations[call.function], s.Attribute)
        and method.name in _APPENDING
        and _is_kept(code, method.base, name, inside=inside)
    ]


def _helped(code: Code, filling: set[str]) -> Iterator[int]:
    """The places where a method calls a method of the same object that fills the field."""
    for number, call in code.of_kind(s.Call):
        method = code.operations[call.function]
        if isinstance(method, s.Attribute) and method.name in filling and is_receiver(code.function, method.base):
            yield number


def _orders(code: Code, name: str, *, inside: bool) -> bool:
    """Whether a method may reorder a field: it sorts it, or stores something that is not empty.

    It may sort it directly, ``x.f.sort()``, or in another way: ``x.f[:] = ...``, ``sorted(x.f)``, each of
    ``x.f.values()``.
    """
    operations = code.operations
    stored = [x for _, x in code.of_kind(s.StoreAttribute) if x.name == name and is_receiver(code.function, x.base)]
    if not all(_is_empty(code, store.value, inside=inside) for store in stored):
        return True
    own = [method.base for _, method in code.of_kind(s.Attribute) if method.name == "sort"]
    if any(_is_kept(code, base, name, inside=inside) or _is_kept(code, base, name, inside=False) for base in own):
        return True
    given = [put.base for _, put in code.of_kind(s.StoreSubscript) if isinstance(operations[put.index], s.Slice)]
    for call in code.calls_named(frozenset(("sorted",))).values():
        given += [argument.value for argument in call.arguments]
    if code.mentions(frozenset(("sort",))):
        given += [view.base for _, view in code.of_kind(s.Attribute) if view.name in ("values", "items")]
    return any(isinstance(field := operations[n], s.Attribute) and field.name == name for n in given)


def _is_kept(code: Code, number: int, name: str, *, inside: bool) -> bool:
    """Whether a value is a field of the receiver, or an element of it."""
    operation = code.operations[number]
    if not inside:
        return is_own_field(code.function, number, name)
    return isinstance(operation, s.Subscript) and is_own_field(code.function, operation.base, name)


def _is_empty(code: Code, number: int, *, inside: bool) -> bool:
    """Whether it is made empty, ``[]``, ``deque()``, or of empty lists: ``[[] for _ in x]``, ``defaultdict(list)``."""
    made = code.operations[number]
    if inside and isinstance(made, s.Collected):
        return _is_empty(code, made.element, inside=False)
    if isinstance(made, s.Call):
        return len(made.arguments) <= inside
    if isinstance(made, s.DictDisplay):
        return inside and not made.keys
    return isinstance(made, s.Display) and all(inside and _is_empty(code, n, inside=False) for n in made.elements)
