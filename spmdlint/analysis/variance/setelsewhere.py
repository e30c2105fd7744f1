"""Stores to a name that are made in other functions than its own: by ``global`` and by ``nonlocal``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.program.link import FunctionRef

Store = tuple[FunctionRef, int]


def of_module(ev: Evaluator, path: Path, name: str) -> Iterator[Store]:
    """The stores to a name of a module that its functions make."""
    return _stores(ev, path, ev.names.setters(ev.project.modules[path]).get(name, ()), name)


def of_function(ev: Evaluator, frame: Frame, name: str) -> Iterator[Store]:
    """The stores to a name of a function that are made by functions defined in it."""
    return _stores(ev, frame.ref.path, frame.code.set_inside.get(name, ()), name)


def _stores(ev: Evaluator, path: Path, functions: Iterable[int], name: str) -> Iterator[Store]:
    for index in functions:
        for number in ev.project.modules[path].summary.functions[index].stores[name]:
            yield FunctionRef(path, index), number
