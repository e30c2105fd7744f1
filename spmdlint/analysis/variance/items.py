"""What is put into dictionaries, lists and arrays of the host, one by one.

Of a read under a key, a literal key finds what was put under that key, and a computed key what was put under computed
keys. A list varies as soon as one of its elements does, and an array if only some processes fill it.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.elements import entries
from spmdlint.analysis.evaluation.fillings import filling_of, methods_of
from spmdlint.analysis.evaluation.receivers import is_own_field
from spmdlint.analysis.evaluation.values import Applied, Constant, Frame, Site, certain, constant
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.element import of_entry
from spmdlint.analysis.variance.guarded import guarded
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.sources import drawn
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_FILLERS = frozenset(("update", "setdefault"))
_APPENDING = frozenset("append appendleft extend insert".split())
_SHUFFLERS = frozenset(("shuffle",))
_MADE = names("filled_arrays")
_KINDS = ("identity", "completion")


def of_item(origins: Origins, frame: Frame, operation: s.Subscript) -> Reason | None:
    """Why the value that is read has the property."""
    if isinstance(frame.code.operations[operation.index], s.Slice):
        return None
    return of_lookup(origins, frame, operation.base, operation.index)


def of_lookup(origins: Origins, frame: Frame, base: int, index: int) -> Reason | None:
    """Why the value of a dictionary under a key has the property."""
    key = constant(origins.ev.value(frame, index))
    found = origins.all_of(
        origins.step(inside, number, "it is put under a key here", origins.why(inside, value))
        for inside, number in _puts(origins, frame, base)
        for value in _put_under(origins, inside, number, key)
    )
    return found or (of_entry(origins, frame, base, key.value) if key is not None else None)


def _put_under(origins: Origins, frame: Frame, number: int, key: Constant | None) -> Iterator[int]:
    """The values that an operation puts into a dictionary under a key; for a computed key, under any computed key."""
    put = frame.code.operations[number]
    if isinstance(put, s.StoreSubscript):
        if constant(origins.ev.value(frame, put.index)) == key:
            yield put.value
    elif isinstance(put, s.Call):
        given = [argument.value for argument in put.arguments if argument.keyword is None and not argument.star]
        if key is not None:
            yield from (argument.value for argument in put.arguments if argument.keyword == key.value)
        if len(given) == 2 and constant(origins.ev.value(frame, given[0])) == key:
            yield given[1]  # setdefault
        elif len(given) == 1 and key is not None:
            yield from (value for where, value in entries(origins.ev, frame, given[0], key.value) if where is frame)


def _puts(origins: Origins, frame: Frame, base: int) -> Iterator[tuple[Frame, int]]:
    """The operations that put something into a dictionary, which is a name of the function or a field of an object."""
    operation = frame.code.operations[base]
    if isinstance(operation, s.Load):
        for number, filled in _fillings(frame):
            into = frame.code.operations[filled]
            if isinstance(into, s.Load) and into.name == operation.name:
                yield frame, number
    elif isinstance(operation, s.Attribute):
        for method in methods_of(origins.ev, frame, operation.base):
            code = origins.ev.code(method)
            inside = origins.frame_of(method)
            yield from (
                (inside, n) for n, base in _fillings(inside) if is_own_field(code.function, base, operation.name)
            )


def _fillings(frame: Frame) -> Iterator[tuple[int, int]]:
    """The operations of a function that put something into a dictionary, each with the dictionary."""
    yield from ((number, put.base) for number, put in frame.code.of_kind(s.StoreSubscript))
    for number, call in frame.code.of_kind(s.Call):
        method = frame.code.operations[call.function]
        if isinstance(method, s.Attribute) and method.name in _FILLERS:
            yield number, method.base


def of_appended(origins: Origins, frame: Frame, load: int) -> Reason | None:
    """Why an element varies that the function itself puts into the list with this name."""
    found = []
    for number in filling_of(origins.ev, frame, load):
        call = frame.code.operations[number]
        method = frame.code.operations[call.function] if isinstance(call, s.Call) else None
        if isinstance(call, s.Call) and isinstance(method, s.Attribute) and method.name in _APPENDING:
            put = origins.any_of(frame, [argument.value for argument in call.arguments])
            found.append(origins.step(frame, number, "it is put into a list here", put))
    return origins.all_of(found)


def of_shuffled(content: Origins, frame: Frame, read: int, name: str) -> Reason | None:
    """Why a name is in a shuffled order: ``rng.shuffle(name)`` runs before it is read, with a varying generator."""
    operations = frame.code.operations
    for number, call in frame.code.calls_named(_SHUFFLERS).items() if name not in frame.code.sorted_names else ():
        given = operations[call.arguments[0].value] if call.arguments else None
        if not isinstance(given, s.Load) or given.name != name or not _comes_to(content, frame, call, read, name):
            continue
        if not any(number in inputs(each) for each in operations):  # what returns something, shuffles that instead
            found = drawn(Site(frame.ref, number), content.why(frame, number))
            if found is not None:
                return found.then(Site(frame.ref, number), "the shuffle depends on it", "shuffle")
    return None


def _comes_to(content: Origins, frame: Frame, shuffle: s.Call, read: int, name: str) -> bool:
    """Whether the value that a name has when it is shuffled still reaches another place, which runs later."""
    function, shuffled = frame.code.function, shuffle.arguments[0].value
    flow, blocks = content.ev.flow(frame.ref), function.block_of
    after = (flow.reachable(edge.target) for edge in function.blocks[blocks[shuffled]].edges)
    runs_later = (blocks[shuffled] == blocks[read] and shuffled < read) or any(blocks[read] in each for each in after)
    kept = not flow.reaching(shuffled, name).isdisjoint(flow.reaching(read, name))
    return not function.binds(name) or (kept and runs_later)


def of_filled(content: Origins, control: Control, frame: Frame, load: s.Load, number: int) -> Reason | None:
    """Why a NumPy array with a name holds something else on each process."""
    made = certain(content.ev.value(frame, number)) if frame.code.function.binds(load.name) else None
    if not isinstance(made, Applied) or made.name not in _MADE:
        return None
    for place in filling_of(content.ev, frame, number):
        put = frame.code.operations[place]
        if isinstance(put, s.StoreSubscript) and place < number:
            found = guarded(content, control, frame, place)
            if found is not None and found.kind in _KINDS:
                return found.then(Site(frame.ref, place), f"only some processes fill {load.name!r} here")
            found = content.any_of(frame, (put.value, put.index))
            if found is not None:
                return content.step(frame, place, f"it is put into {load.name!r} here", found)
    return None
