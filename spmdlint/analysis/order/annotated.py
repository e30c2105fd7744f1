"""Sets by their annotations: parameters, fields, and results of functions of which nothing else is known.

Only the elements that are named decide: a set of strings has a different order in each process, a set of numbers the
same. ``set``, ``set[T]`` and ``set[Any]`` say nothing about them.
"""

from __future__ import annotations

import re

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Instance, Site, certain
from spmdlint.analysis.variance.reason import Reason
from spmdlint.program import summary as s

_SETS = frozenset("set frozenset abstractset mutableset".split())  # also those of `typing`, in lower case
_HASHED_APART = frozenset("str bytes Device Path PurePath PosixPath".split())
"""Classes whose objects have different hashes in each process."""
_WRITTEN = re.compile(r"(?:\w+\.)*(?:frozen)?set\[(?:str|bytes)\](?: \| None)?", re.IGNORECASE)
"""An annotation that is written as a string."""


def set_by_annotation(ev: Evaluator, frame: Frame, number: int) -> Reason | None:
    """Why a parameter, field or result is a set whose order differs; None if no annotation says so."""
    operation, site = frame.code.operations[number], Site(frame.ref, number)
    if isinstance(operation, s.Parameter):
        written = ev.objects.annotations.written(frame, operation.name)
        text = f"{operation.name!r} is a set, by its annotation"
    elif isinstance(operation, s.Attribute):
        written = _of_field(ev, frame, operation)
        text = f".{operation.name} is a set, by its annotation"
    elif isinstance(operation, s.Call):
        written = _of_result(ev, frame, operation)
        text = "this call returns a set, by the annotation of its function"
    else:
        return None
    return Reason(site, text, "set") if written is not None and _is_set(ev, *written) else None


def _of_field(ev: Evaluator, frame: Frame, read: s.Attribute) -> tuple[Frame, int] | None:
    """The annotation of a field in the body of its class."""
    base = certain(ev.value(frame, read.base))
    for cls in ev.objects.lineage(base.cls) if isinstance(base, Instance) else ():
        body = ev.free_frame(cls.ref)
        annotation = ev.objects.annotations.of_field(body, read.name)
        if annotation is not None:
            return body, annotation
    return None


def _of_result(ev: Evaluator, frame: Frame, call: s.Call) -> tuple[Frame, int] | None:
    """The annotation of what a function of the project returns."""
    called = [callee.ref for callee in ev.value(frame, call.function) if isinstance(callee, FunctionValue)]
    if len(called) != 1 or ev.project.function(called[0]).generator:
        return None
    return ev.objects.annotations.written(ev.free_frame(called[0]), "return")


def _is_set(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether an annotation is a set of objects whose order differs between processes."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Const) and isinstance(operation.value, str):
        return _WRITTEN.fullmatch(operation.value.strip()) is not None
    if isinstance(operation, s.Binary) and operation.operator == "|":
        return _is_set(ev, frame, operation.left) or _is_set(ev, frame, operation.right)
    if not isinstance(operation, s.Subscript):
        return False
    name = _last_name(ev, frame, operation.base)
    if name in ("Optional", "Annotated", "Final"):
        return _is_set(ev, frame, operation.index)
    return name.lower() in _SETS and _is_hashed_apart(ev, frame, operation.index)


def _is_hashed_apart(ev: Evaluator, frame: Frame, element: int) -> bool:
    """Whether objects of the annotated class have different hashes in each process; for a tuple, any of its parts."""
    operation = frame.code.operations[element]
    if isinstance(operation, s.Subscript):
        parts = frame.code.operations[operation.index]
        inner = parts.elements if isinstance(parts, s.Display) else (operation.index,)
        return _last_name(ev, frame, operation.base).lower() == "tuple" and any(
            _is_hashed_apart(ev, frame, part) for part in inner
        )
    return _last_name(ev, frame, element) in _HASHED_APART


def _last_name(ev: Evaluator, frame: Frame, number: int) -> str:
    """The last part of the name of a library class; empty for a class of the project."""
    value = certain(ev.value(frame, number))
    return value.name.rpartition(".")[2] if isinstance(value, External) else ""
