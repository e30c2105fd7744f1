"""Lists and dictionaries that a loop fills, and lists in fields that methods fill: the order of that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import extensions_of, fillings, given_to, in_loops, methods_of
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.receivers import is_own_field, is_receiver
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Instance
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_YIELD = (s.Yield,)
_APPENDING = frozenset(("append", "appendleft"))


def order_of_filling(origins: Origins, frame: Frame, load: int, text: str) -> Reason | None:
    """Why the elements of a name's value have the property, because of the loop that put them there."""
    function = origins.ev.function(frame)
    operation = function.operations[load]
    assert isinstance(operation, s.Load)
    if not function.binds(operation.name) or operation.name in frame.code.sorted_names:
        return None
    lists = _are_lists(origins.ev, frame, operation.name)
    keyed = _has_keys(origins.ev, frame, operation.name)
    found: list[Reason | None] = []
    for filled, iterable in fillings(origins.ev, frame, load):
        if lists and isinstance(function.operations[filled], s.StoreSubscript):
            continue  # an element stored under an index has its place, whenever it is stored
        if keyed and isinstance(function.operations[filled], s.StoreSubscript):
            continue  # a key that exists already keeps its place
        loop = origins.step(frame, iterable, "this loop iterates over it", origins.why(frame, iterable))
        found.append(origins.step(frame, filled, text.format(name=repr(operation.name)), loop))
    for filled, put in extensions_of(frame, load, operation.name):
        found.append(origins.step(frame, filled, text.format(name=repr(operation.name)), origins.why(frame, put)))
    return origins.all_of(found)


def _has_keys(ev: Evaluator, frame: Frame, name: str) -> bool:
    """Whether a name is only given dictionaries that have keys when they are made: a comprehension, `dict.fromkeys`."""
    made = given_to(frame.code.function, name)
    return bool(made) and all(_is_keyed(ev, frame, each) for each in made)


def _is_keyed(ev: Evaluator, frame: Frame, made: s.Operation) -> bool:
    if isinstance(made, s.DictDisplay):
        return bool(made.keys)
    if isinstance(made, s.Call):
        names = {v.name for v in ev.value(frame, made.function) if isinstance(v, External)}
        return "builtins.dict.fromkeys" in names or ("builtins.dict" in names and bool(made.arguments))
    return isinstance(made, s.Collected) and made.kind == "dict"


def _are_lists(ev: Evaluator, frame: Frame, name: str) -> bool:
    """Whether a name is only given lists, as far as is written: ``[...]``, ``list(...)``, and sums of these."""
    function = frame.code.function
    stores = [function.operations[number] for number in function.stores.get(name, ())]
    return bool(stores) and all(isinstance(o, s.Store) and _is_list(ev, frame, o.value) for o in stores)


def _is_list(ev: Evaluator, frame: Frame, number: int) -> bool:
    made = frame.code.operations[number]
    if isinstance(made, s.Binary) and made.operator in ("+", "*"):
        return _is_list(ev, frame, made.left) or _is_list(ev, frame, made.right)
    if isinstance(made, s.Call):
        return ev.may_call(frame, made, "builtins.list")
    return isinstance(made, (s.Display, s.Collected)) and made.kind == "list"


def order_of_yields(origins: Origins, frame: Frame) -> Reason | None:
    """Why a generator yields in such an order: by a loop around a ``yield``, or an index into a list that it yields."""
    function = origins.ev.function(frame)
    yielded = [o for o in function.operations if isinstance(o, s.Yield) and o.value is not None]
    found: list[Reason | None] = []
    for value in (o.value for o in yielded if o.delegate and o.value is not None):
        found.append(origins.step(frame, value, f"{function.name}() yields in that order", origins.why(frame, value)))
    values = [o.value for o in yielded if o.value is not None]
    for chosen in (function.operations[value] for value in values):
        if isinstance(chosen, s.Subscript) and not isinstance(function.operations[chosen.index], (s.Slice, s.Const)):
            text = f"{function.name}() yields elements by their position in it"
            found.append(origins.step(frame, chosen.base, text, origins.why(frame, chosen.base)))
    flow = origins.ev.flow(frame.ref)
    yields = {block for block, _, _ in frame.code.each(_YIELD)}
    for number in sorted(origins.ev.live_blocks(frame)):
        test = function.blocks[number].test
        operation = function.operations[test] if test is not None else None
        if isinstance(operation, s.Next) and flow.loop_body(number) & yields:
            text = f"{function.name}() yields in that order"
            found.append(origins.step(frame, operation.iterable, text, origins.why(frame, operation.iterable)))
    return origins.all_of(found)


def order_of_generator(origins: Origins, frame: Frame, number: int, operation: s.Call) -> Reason | None:
    """Why a call of the project's own generator function yields in such an order."""
    for callee in ordered(origins.ev.value(frame, operation.function)):
        if isinstance(callee, FunctionValue):
            found = origins.in_generator(frame, number, operation, callee, partial(order_of_yields, origins))
            if found is not None:
                return found
    return None


def order_of_iteration(origins: Origins, frame: Frame, number: int) -> Reason | None:
    """Why a loop goes over a value in such an order: its own, or that of the ``__iter__`` of an object."""
    root = frame.code.operations[frame.code.root_of(number)]
    found = origins.why(frame, number)
    if found is not None:
        return found
    for caller, given in origins.passed_for(frame, root.name) if isinstance(root, s.Parameter) else ():
        found = _of_objects(origins, caller, given)
        if found is not None:
            return found
    return _of_objects(origins, frame, number)


def _of_objects(origins: Origins, frame: Frame, number: int) -> Reason | None:
    for value in ordered(origins.ev.value(frame, number)):
        for method in origins.ev.objects.attribute(value, "__iter__") if isinstance(value, Instance) else ():
            if not isinstance(method, FunctionValue):
                continue
            inside = origins.ev.free_frame(method.ref)
            yields = inside.code.function.generator
            found = order_of_yields(origins, inside) if yields else origins.of_returns(inside)
            if found is not None:
                return found
    return None


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
    found: list[Reason | None] = []
    for method, code in codes.items():
        where = origins.frame_of(method)
        extended = [] if inside else code.extensions
        extending = [(n, put) for n, base, put in extended if is_own_field(code.function, base, field.name)]
        putting = [*puts[method], *_helped(code, filling)]
        for filled, source in (*extending, *in_loops(origins.ev, where, putting)):
            put = origins.step(where, filled, text.format(name=repr(field.name)), origins.why(where, source))
            found.append(origins.step(frame, number, f"{field.name!r} is read here", put))
    return origins.all_of(found)


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
