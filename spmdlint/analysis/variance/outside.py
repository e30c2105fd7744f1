"""Where fields of objects are set by others than their own methods: ``trainer.should_stop = True`` in a callback."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import ClassValue, Instance
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class OutsideStores:
    """Those stores by the name of the field. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def of(self, cls: ClassValue, name: str) -> Iterator[tuple[FunctionRef, int]]:
        """The stores to a field of a class: to its objects, or to what only it can be by the name of the field."""
        for ref, number in self._stores.get(name, ()):
            frame = self.ev.free_frame(ref)
            stored = frame.code.operations[number]
            assert isinstance(stored, s.StoreAttribute)
            bases = self.ev.objects.by_name.owners(self.ev.value(frame, stored.base), name, ref.path)
            if any(isinstance(base, Instance) and base.cls == cls for base in bases):
                yield ref, number

    @cached_property
    def _stores(self) -> dict[str, list[tuple[FunctionRef, int]]]:
        found: dict[str, list[tuple[FunctionRef, int]]] = {}
        for ref in self.ev.project.functions():
            function = self.ev.project.function(ref)
            receiver = function.formals[0].name if function.formals else None
            method = self.ev.project.enclosing_class(ref) is not None
            for number, operation in self.ev.code(ref).of_kind(s.StoreAttribute):
                base = function.operations[operation.base]
                if not (method and isinstance(base, s.Load) and base.name == receiver):
                    found.setdefault(operation.name, []).append((ref, number))
        return found
