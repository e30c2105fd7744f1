"""Variance of one element of a tuple, or one entry of a dictionary, that is written out, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from spmdlint.analysis.evaluation.elements import elements, entries, returns
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Instance, constant
from spmdlint.analysis.variance.arguments import kind_of
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Reason
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_CALLS = 3  # calls above one another through which a tuple is passed


def of_element(origins: Origins, frame: Frame, operation: s.Subscript | s.Item) -> Answer:
    """Why the selected element has the property; CONTINUE if the tuple is not written out anywhere."""
    selected = _selected(origins, frame, operation)
    if selected is None:
        return CONTINUE
    base, index = selected
    places = list(elements(origins.ev, frame, base, index))
    if not places:
        given = elsewhere(origins, frame, base)
        places = [place for where, number in given for place in elements(origins.ev, where, number, index)]
        places += _rest(origins, frame, base, "*", index)
    if not places:
        return CONTINUE
    found = next((found for place in places if (found := _of_place(origins, frame, base, *place)) is not None), None)
    return found or _of_choice(origins, frame, base, index)


def _of_choice(origins: Origins, frame: Frame, base: int, index: int) -> Reason | None:
    """Why the selected element has the property: by the branch that decides which tuple a called function returns."""
    root = frame.code.root_of(base)
    call = frame.code.operations[root]
    callee = origins.ev.callee(frame, call)
    if not isinstance(call, s.Call) or not isinstance(callee, FunctionValue):
        return None
    function = origins.ev.project.function(callee.ref)
    if function.generator:
        return None

    def ask(entered: Frame) -> Reason | None:
        places = [(number, _written(origins, entered, value, index)) for number, value in returns(origins.ev, entered)]
        if len(places) < 2 or any(element is None for _, element in places):
            return None
        name = f"item {index} of the result of {function.name}()"
        return origins.property.chosen(origins, entered, name, places, None)

    found = origins.in_call(frame, root, call, callee, ask)
    return origins.step(frame, root, f"{function.name}() returns it", found)


def _written(origins: Origins, frame: Frame, value: int | None, index: int) -> int | None:
    """The element at an index of a returned tuple, if it is written out in the function itself."""
    places = list(elements(origins.ev, frame, value, index)) if value is not None else []
    return places[0][1] if len(places) == 1 and places[0][0] is frame else None


def _selected(origins: Origins, frame: Frame, operation: s.Subscript | s.Item) -> tuple[int, int] | None:
    """The tuple that an element is taken from, and the element's index; None if it is not known."""
    if isinstance(operation, s.Item):
        return operation.value, operation.index
    known = constant(origins.ev.value(frame, operation.index))
    return (operation.base, known.value) if known is not None and isinstance(known.value, int) else None


def elsewhere(origins: Origins, frame: Frame, base: int) -> Iterator[tuple[Frame, int]]:
    """What a parameter, a name of the module or a field may hold, each once: what callers pass, and what is stored."""
    seen = {(frame, base)}
    new = list(seen)
    for _ in range(_CALLS):
        held = [
            place
            for where, number in new
            for root in _roots(origins, where, number)
            for place in _held(origins, where, root)
        ]
        new = [place for place in dict.fromkeys(held) if place not in seen]
        seen.update(new)
        yield from new


def _roots(origins: Origins, frame: Frame, base: int) -> Iterator[s.Operation]:
    """The operations that make what a value is, also where it is changed since."""
    root = frame.code.operations[frame.code.root_of(base)]
    if not isinstance(root, s.Load) or not frame.code.function.binds(root.name):
        yield root
        return
    for number in sorted(origins.ev.reaching(frame, frame.code.root_of(base), root.name)):
        store = frame.code.operations[number]
        made = frame.code.operations[store.value] if isinstance(store, s.Store) else store
        if not isinstance(made, s.Load):
            yield made


def _held(origins: Origins, frame: Frame, operation: s.Operation) -> Iterator[tuple[Frame, int]]:
    if isinstance(operation, s.Parameter):
        yield from origins.passed_for(frame, operation.name)
    elif isinstance(operation, s.Load) and frame.code.scope_of(operation.name) is None:
        top = origins.ev.free_frame(FunctionRef(frame.ref.path, 0))
        yield from ((top, number) for number in top.code.function.stores.get(operation.name, ()))
    elif isinstance(operation, s.Attribute):
        for value in origins.ev.value(frame, operation.base):
            stores = origins.ev.objects.attribute_stores(value.cls.ref) if isinstance(value, Instance) else {}
            for method, store in stores.get(operation.name, ()):
                stored = origins.ev.code(method).operations[store]
                if isinstance(stored, s.StoreAttribute):
                    yield origins.frame_of(method), stored.value


def _rest(origins: Origins, frame: Frame, base: int, star: str, item: object) -> Iterator[tuple[Frame, int]]:
    """What callers pass as an item of ``*args`` or ``**kwargs``."""
    for root in _roots(origins, frame, base):
        if isinstance(root, s.Parameter) and kind_of(frame, root.name) == star:
            yield from origins.in_rest(frame, star, item)


def of_entry(origins: Origins, frame: Frame, base: int, key: object) -> Reason | None:
    """Why the value under a key of a dictionary that is written out has the property."""
    places = list(entries(origins.ev, frame, base, key))
    if not places:
        given = elsewhere(origins, frame, base)
        places = [place for where, number in given for place in entries(origins.ev, where, number, key)]
        places += _rest(origins, frame, base, "**", key)
    return next((found for place in places if (found := _of_place(origins, frame, base, *place)) is not None), None)


def _of_place(origins: Origins, frame: Frame, base: int, where: Frame, number: int) -> Reason | None:
    """Why an element has the property at the place that writes it; in a called function, as entered by that call."""
    root = frame.code.root_of(base)
    call = frame.code.operations[root]
    callees = ordered(origins.ev.value(frame, call.function)) if isinstance(call, s.Call) and where is not frame else ()
    for callee in callees:
        if not isinstance(call, s.Call) or not isinstance(callee, FunctionValue):
            continue
        if callee.ref == where.ref:
            return origins.within(where, frame, root, lambda: origins.why(where, number))
        inner = origins.ev.entered_frame(callee, origins.ev.arguments(frame, call), frame.depth + 1)
        given = returns(origins.ev, inner) if inner is not None else ()
        ways = [v for _, v in given if inner is not None and v is not None and _runs(origins, inner, v, where.ref)]
        asks = (partial(_of_place, origins, base=value, where=where, number=number) for value in ways)
        if ways:  # through another function, as that of a decorator
            return origins.all_of(origins.in_call(frame, root, call, callee, ask) for ask in asks)
    return origins.why(where, number)


def _runs(origins: Origins, frame: Frame, number: int, ref: FunctionRef) -> bool:
    """Whether a value is what a call of a function gives."""
    call = frame.code.operations[frame.code.root_of(number)]
    callees = origins.ev.value(frame, call.function) if isinstance(call, s.Call) else ()
    return any(isinstance(callee, FunctionValue) and callee.ref == ref for callee in callees)
