"""Reads from a dictionary under a key, where the program puts values into it one by one: a table, a cache.

A literal key finds what was put under that key; a computed key finds what was put under computed keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.fillings import methods_of
from spmdlint.analysis.evaluation.receivers import is_own_field
from spmdlint.analysis.evaluation.values import Frame, constant
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s


def of_item(origins: Origins, frame: Frame, operation: s.Subscript) -> Reason | None:
    """Why the value that is read has the property."""
    if isinstance(frame.code.operations[operation.index], s.Slice):
        return None
    key = constant(origins.ev.value(frame, operation.index))
    for inside, store in _stores(origins, frame, operation.base):
        put = inside.code.operations[store]
        if isinstance(put, s.StoreSubscript) and constant(origins.ev.value(inside, put.index)) == key:
            found = origins.of(inside, put.value)
            if found is not None:
                return origins.step(inside, store, "it is put under a key here", found)
    return None


def _stores(origins: Origins, frame: Frame, base: int) -> Iterator[tuple[Frame, int]]:
    """The operations that put something into a dictionary, which is a name of the function or a field of an object."""
    operation = frame.code.operations[base]
    if isinstance(operation, s.Load):
        for number, put in frame.code.of_kind(s.StoreSubscript):
            filled = frame.code.operations[put.base]
            if isinstance(filled, s.Load) and filled.name == operation.name:
                yield frame, number
    elif isinstance(operation, s.Attribute):
        yield from _of_field(origins, frame, operation)


def _of_field(origins: Origins, frame: Frame, field: s.Attribute) -> Iterator[tuple[Frame, int]]:
    for method in methods_of(origins.ev, frame, field.base):
        code = origins.ev.code(method)
        for number, put in code.of_kind(s.StoreSubscript):
            if is_own_field(code.function, put.base, field.name):
                yield origins.frame_of(method), number
