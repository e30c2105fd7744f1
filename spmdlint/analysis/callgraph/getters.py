"""Calls that are not written as calls: properties that are read, special methods, as behind ``with`` and ``x[k]``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias, get_args

from spmdlint.analysis.evaluation.byname import is_common
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Arguments, Frame, FunctionValue, Instance, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

Implied: TypeAlias = s.Attribute | s.Enter | s.Leave | s.Subscript | s.StoreSubscript | s.Binary | s.Next | s.Compare
_BINARY = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "@": "__matmul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "<<": "__lshift__",
    ">>": "__rshift__",
    "|": "__or__",
    "&": "__and__",
}
_SPECIAL = frozenset(
    ("__enter__", "__exit__", "__getitem__", "__setitem__", "__iter__", "__contains__", *_BINARY.values())
)


class Getters:
    """The properties and special methods among some functions, by name, and the functions that run them."""

    def __init__(self, evaluator: Evaluator, frames: Iterable[Frame]) -> None:
        self.ev = evaluator
        self._reads: dict[FunctionRef, list[tuple[int, Implied]]] = {}
        self.names = frozenset(
            evaluator.project.function(ref).name for ref in {frame.ref for frame in frames} if self._is_getter(ref)
        )

    @cached_property
    def _kinds(self) -> tuple[type[s.Operation], ...]:
        """The kinds of operations that may run one of these: most programs have only properties."""
        special = self.names & _SPECIAL
        return (s.Attribute, *(get_args(Implied)[1:] if special else ()))

    def _is_getter(self, ref: FunctionRef) -> bool:
        owner = self.ev.project.enclosing_class(ref)
        name = self.ev.project.function(ref).name
        return owner is not None and (name in _SPECIAL or self._of_class(owner, name) is not None)

    def _of_class(self, owner: FunctionRef, name: str) -> FunctionValue | None:
        """The property of an object of a class."""
        return self.ev.objects.getter(Instance(self.ev.objects.class_of(owner)), name)

    def reads(self, frame: Frame) -> list[tuple[int, Implied]]:
        """The operations of a function that may run one of these."""
        if not self.names:
            return []
        found = self._reads.get(frame.ref)
        if found is None:
            found = self._reads[frame.ref] = [
                (number, operation)
                for kind in self._kinds
                for number, operation in frame.code.of_kind(kind)
                if isinstance(operation, Implied) and _run_by(operation)[0] in self.names
            ]
        return found

    def read_by(self, frame: Frame, operation: Implied) -> tuple[FunctionValue, Arguments] | None:
        """The function that an operation runs, and its arguments.

        For a property of an unknown object, that is the only one of its name.
        """
        name, base = _run_by(operation)
        owners = [value for value in self.ev.value(frame, base) if isinstance(value, Instance)]
        if not isinstance(operation, s.Attribute):
            method = certain(self.ev.objects.attribute(owners[0], name)) if len(owners) == 1 else None
            return (method, Arguments(open=True)) if isinstance(method, FunctionValue) else None
        if owners:
            getter = self.ev.objects.getter(owners[0], name) if len(owners) == 1 else None
        else:
            known = () if is_common(name) else self.ev.project.methods_by_name.get(name, ())
            owner = self.ev.project.enclosing_class(known[0]) if len(known) == 1 else None
            getter = self._of_class(owner, name) if owner is not None else None
        return (getter, Arguments()) if getter is not None else None


def _run_by(operation: Implied) -> tuple[str, int]:
    """The name of the method that an operation runs, and the object that has it."""
    if isinstance(operation, s.Attribute):
        return operation.name, operation.base
    if isinstance(operation, (s.Enter, s.Leave)):
        return "__enter__" if isinstance(operation, s.Enter) else "__exit__", operation.manager
    if isinstance(operation, s.Binary):
        return _BINARY.get(operation.operator, ""), operation.left
    if isinstance(operation, s.Compare):
        return "__contains__" if operation.operators[-1] in ("in", "not in") else "", operation.operands[-1]
    if isinstance(operation, s.Next):
        return "__iter__", operation.iterable
    return "__getitem__" if isinstance(operation, s.Subscript) else "__setitem__", operation.base
