"""The longest, the shortest, or the sum of the lengths of some rows: most likely this process's own examples.

Lengths alone are no sign of data, since shapes and axes have lengths as well; but code that pads to the longest row has
data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import filling_of
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, External, Frame, Site, certain, constant, deed
from spmdlint.analysis.evaluation.values import Collection as Written
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, OtherFacets, Property, Reason
from spmdlint.analysis.variance.reason import of_kind
from spmdlint.knowledge.elements import elements
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

# What a function would use to select some of the lines for its process.
_WHO = frozenset("process_index process_count host_id host_count rank world_size".split())
_TEXT = "the lengths of the examples differ between processes"

_NAMES = frozenset("name names key keys metrics columns headers titles".split())
_REQUESTS = frozenset(("prompts", "requests"))
_SUMMARIES = frozenset("max min sum sorted amax amin nanmax percentile quantile".split())
_LISTERS = frozenset("array asarray list tuple fromiter stack".split())


class Lengths(Property):
    """The value is a list of the lengths of rows that, as far as ``content`` says, not all processes have."""

    def __init__(self, facets: OtherFacets) -> None:
        self.facets = facets

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        ev = origins.ev
        if isinstance(operation, s.Collected):
            listed = operation.kind != "set" and is_length_of_one(ev, frame, operation)
            listed = listed and not shared_out_later(self.facets.content, frame, operation)
            listed = listed and not _outputs(ev, frame, operation) and not _is_requested(frame, operation)
            listed = listed and not _lines_for_all(self.facets.content, frame, operation)
            loops = [frame.code.operations[loop] for loop in operation.loops]
            rows = [loop.iterable for loop in loops if isinstance(loop, s.Next)]
            listed = listed and not any(_are_no_examples(ev, frame, each) for each in rows)
            return Reason(Site(frame.ref, number), _TEXT, "ragged") if listed else None
        if isinstance(operation, (s.Load, s.Store, s.Parameter)):
            return CONTINUE
        if not isinstance(operation, s.Call):
            return None
        for callee in ordered(ev.value(frame, operation.function)):
            if isinstance(callee, External):
                return self._listed(origins, frame, number, operation, callee.name)
        return CONTINUE

    @staticmethod
    def _listed(origins: Origins, frame: Frame, number: int, operation: s.Call, name: str) -> Reason | None:
        if not operation.arguments:
            return None
        first = operation.arguments[0].value
        if elements().get(name) == "map" and any(deed(each) == "length" for each in origins.ev.value(frame, first)):
            if any(_are_no_examples(origins.ev, frame, each.value) for each in operation.arguments[1:]):
                return None
            return Reason(Site(frame.ref, number), _TEXT, "ragged")
        return origins.why(frame, first) if _last(name) in _LISTERS else None


def _are_no_examples(ev: Evaluator, frame: Frame, rows: int) -> bool:
    """Whether rows are written out in the program, or are names, which tables and messages are laid out by."""
    operation = frame.code.operations[rows]
    if isinstance(operation, s.Call) and isinstance(method := frame.code.operations[operation.function], s.Attribute):
        operation = method
    name = operation.name if isinstance(operation, (s.Load, s.Attribute)) else ""
    written = certain(ev.value(frame, rows))
    known = isinstance(written, Written) and not written.open and all(map(constant, written.elements))
    return known or not _NAMES.isdisjoint(name.lower().split("_"))


def shared_out_later(content: Origins, frame: Frame, collected: s.Collected) -> bool:
    """Whether the function later slices this process's part from the rows or their results: all have the whole."""
    operations = frame.code.operations
    loops = [operations[loop] for loop in collected.loops]
    rows = {frame.code.root_of(loop.iterable) for loop in loops if isinstance(loop, s.Next)}
    for _, cut in frame.code.of_kind(s.Subscript):
        cuts = isinstance(operations[cut.index], s.Slice) and made_of(content.ev, frame, cut.base, rows)
        if cuts and of_kind(content.why(frame, cut.index), "data") is not None:
            return True
    return any(_shares_out(content, frame, number, rows) for number, _ in frame.code.of_kind(s.Call))


def _shares_out(content: Origins, frame: Frame, number: int, rows: Collection[int]) -> bool:
    """Whether a call makes this process's part of rows that all processes have."""
    call = frame.code.operations[number]
    given = [argument.value for argument in call.arguments] if isinstance(call, s.Call) else []
    if not any(content.why(frame, each) is None and made_of(content.ev, frame, each, rows) for each in given):
        return False
    found = content.why(frame, number)
    return found is not None and found.chain()[0].kind == "identity"


def _outputs(ev: Evaluator, frame: Frame, collected: s.Collected) -> bool:
    """Whether each of the rows is an output of a compiled function, which is as large on every process."""
    loops = [frame.code.operations[loop] for loop in collected.loops]
    rows = [loop.iterable for loop in loops if isinstance(loop, s.Next)]
    puts = [frame.code.operations[put] for number in rows for put in filling_of(ev, frame, number)]
    given = [argument.value for put in puts if isinstance(put, s.Call) for argument in put.arguments]
    calls = [(n, ev.value(frame, call.function)) for n, call in frame.code.of_kind(s.Call)] if given else []
    made = [(n, value) for n, values in calls for value in values if isinstance(value, Applied)]
    compiled = {n for n, value in made if ev.kind(value) in ("jit", "map")}
    return bool(compiled) and all(made_of(ev, frame, number, compiled) for number in given)


def _is_requested(frame: Frame, collected: s.Collected) -> bool:
    """Whether the rows are what users ask a server for, judging by their name: it shows all processes the same."""
    loops = [frame.code.operations[loop] for loop in collected.loops]
    rows = [frame.code.operations[loop.iterable] for loop in loops if isinstance(loop, s.Next)]
    return any(isinstance(each, (s.Load, s.Attribute)) and each.name in _REQUESTS for each in rows)


def _lines_for_all(content: Origins, frame: Frame, collected: s.Collected) -> bool:
    """Whether the rows are lines of a file that is opened by a name all processes share, and are dealt to none."""
    ev, operations = content.ev, frame.code.operations
    called = [(n, ev.value(frame, call.function)) for n, call in frame.code.of_kind(s.Call)]
    opened = {n for n, values in called if any(getattr(v, "name", "").rpartition(".")[2] == "open" for v in values)}
    paths = [a.value for n, call in frame.code.of_kind(s.Call) if n in opened for a in call.arguments]
    if not opened or frame.code.mentions(_WHO) or any(content.why(frame, path) is not None for path in paths):
        return False
    handles = opened | {
        n for n, entered in frame.code.of_kind(s.Enter) if frame.code.root_of(entered.manager) in opened
    }
    lines = {n for n, each in frame.code.of_kind(s.Next) if frame.code.root_of(each.iterable) in handles}
    rows = [loop.iterable for n in collected.loops if isinstance(loop := operations[n], s.Next)]
    return bool(lines) and all(made_of(ev, frame, number, lines) for number in rows)


def made_of(ev: Evaluator, frame: Frame, number: int, roots: Collection[int]) -> bool:
    """Whether a value is one of the roots, or is computed from one within the function."""
    operations, seen, pending = frame.code.operations, {number}, [number]
    while pending:
        current = pending.pop()
        if current in roots or frame.code.root_of(current) in roots:
            return True
        operation = operations[current]
        found: Iterable[int] = operands(operation)
        if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
            found = [*ev.reaching(frame, current, operation.name), *filling_of(ev, frame, current)]
        elif isinstance(operation, s.Call):
            found = [argument.value for argument in operation.arguments]
        elif isinstance(operation, s.Collected):
            found = [operation.element, *operation.loops]
        pending += [each for each in found if each not in seen]
        seen.update(found)
    return False


def summary_of_lengths(lengths: Origins, frame: Frame, name: str, arguments: Sequence[int]) -> Reason | None:
    """Why what a library's function computes from lengths is a size of the data."""
    return lengths.any_of(frame, arguments) if _last(name) in _SUMMARIES else None


def is_length_of_one(ev: Evaluator, frame: Frame, collected: s.Collected) -> bool:
    """Whether a comprehension collects the lengths of what it loops over: ``len(row)`` or ``row.shape[0]``."""
    function = ev.function(frame)
    element = function.operations[collected.element]
    if isinstance(element, s.Subscript):
        shape = function.operations[element.base]
        if not isinstance(shape, s.Attribute) or shape.name != "shape":
            return False
        asked = function.operations[shape.base]
    elif isinstance(element, s.Call) and len(element.arguments) == 1 and ev.may_do(frame, element, "length"):
        asked = function.operations[element.arguments[0].value]
    else:
        return False
    while isinstance(asked, s.Subscript):
        asked = function.operations[asked.base]
    names = {o.name for o in function.operations if isinstance(o, s.Store) and o.value in collected.loops}
    return isinstance(asked, s.Load) and asked.name in names


def _last(name: str) -> str:
    return name.rpartition(".")[2]
