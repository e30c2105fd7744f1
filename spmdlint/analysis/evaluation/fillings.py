"""Where a loop puts elements into a list or dictionary that has a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.receivers import is_own_field
from spmdlint.analysis.evaluation.values import Frame, Instance
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


def fillings(evaluator: Evaluator, frame: Frame, load: int) -> Iterator[tuple[int, int]]:
    """The operations that put an element into a named collection, each with the iterables of the loops around it."""
    yield from in_loops(evaluator, frame, filling_of(evaluator, frame, load))


def filling_of(evaluator: Evaluator, frame: Frame, load: int) -> list[int]:
    """The operations that fill the collection a name refers to at an operation, but not one it referred to earlier."""
    operation = frame.code.operations[load]
    filling = frame.code.filling.get(operation.name, []) if isinstance(operation, s.Load) else []
    if not filling or not isinstance(operation, s.Load) or not frame.code.function.binds(operation.name):
        return filling
    flow, bases = evaluator.flow(frame.ref), dict(frame.code.fillings)
    return [number for number in filling if _may_be_one(flow, operation.name, load, bases[number])]


def extensions_of(frame: Frame, load: int, name: str) -> list[tuple[int, int]]:
    """The operations that extend the collection a name refers to at an operation, each with the value that is added."""
    extensions = frame.code.extending.get(name, ())
    return [(number, put) for number, base, put in extensions if _may_be_one(frame.code.flow, name, load, base)]


def _may_be_one(flow: Flow, name: str, load: int, other: int) -> bool:
    """Whether a name may refer to one value at two operations: it is not surely given another between them."""
    here, there = (flow.reaching(number, name) for number in (load, other))
    return not here or not there or bool(here & there)


def given_to(function: s.Function, name: str) -> list[s.Operation]:
    """The values that the stores to a name put there, as far as written: of ``batch, rows = {}, []`` its own part."""
    operations = function.operations
    found: list[s.Operation] = []
    for store in (operations[number] for number in function.stores.get(name, ())):
        made = operations[store.value] if isinstance(store, s.Store) else store
        display = operations[made.value] if isinstance(made, s.Item) else None
        if isinstance(made, s.Item) and isinstance(display, s.Display) and not display.starred:
            made = operations[display.elements[made.index]] if made.index < len(display.elements) else made
        found.append(made)
    return found


def fillings_of_field(evaluator: Evaluator, frame: Frame, name: str) -> Iterator[tuple[int, int]]:
    """The operations that put an element into an attribute of a method's receiver, with the loops' iterables."""
    function = evaluator.function(frame)
    filling = [number for number, base in frame.code.fillings if is_own_field(function, base, name)]
    yield from in_loops(evaluator, frame, filling)


def methods_of(evaluator: Evaluator, frame: Frame, owner: int) -> Iterator[FunctionRef]:
    """The methods of the class of an object, including inherited ones."""
    for value in ordered(evaluator.value(frame, owner)):
        for cls in evaluator.objects.lineage(value.cls) if isinstance(value, Instance) else ():
            yield from sorted(evaluator.project.methods(cls.ref).values())


def in_loops(evaluator: Evaluator, frame: Frame, filling: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each of the given operations with the iterables of the loops around it."""
    function = evaluator.function(frame)
    if not filling:
        return
    for header, block in enumerate(function.blocks):
        test = function.operations[block.test] if block.test is not None else None
        if isinstance(test, s.Next):
            body = evaluator.flow(frame.ref).loop_body(header)
            for number in filling:
                if function.block_of[number] in body:
                    yield number, test.iterable
