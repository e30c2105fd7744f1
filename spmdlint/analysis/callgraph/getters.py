"""Properties that make parallel calls: reading one calls it, although it looks like an attribute."""

from __future__ import annotations

from collections.abc import Iterable

from spmdlint.analysis.evaluation.byname import is_common
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Instance
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class Getters:
    """The properties among some functions, by name, and the functions that read them."""

    def __init__(self, evaluator: Evaluator, frames: Iterable[Frame]) -> None:
        self.ev = evaluator
        self._reads: dict[FunctionRef, list[tuple[int, s.Attribute]]] = {}
        self.names = frozenset(
            evaluator.project.function(ref).name for ref in {frame.ref for frame in frames} if self._is_getter(ref)
        )

    def _is_getter(self, ref: FunctionRef) -> bool:
        owner = self.ev.project.enclosing_class(ref)
        name = self.ev.project.function(ref).name
        return owner is not None and self._of_class(owner, name) is not None

    def _of_class(self, owner: FunctionRef, name: str) -> FunctionValue | None:
        """The property of an object of a class."""
        return self.ev.objects.getter(Instance(self.ev.objects.class_of(owner)), name)

    def reads(self, frame: Frame) -> list[tuple[int, s.Attribute]]:
        """The attributes of these names that a function reads."""
        if not self.names:
            return []
        found = self._reads.get(frame.ref)
        if found is None:
            read = frame.code.of_kind(s.Attribute)
            found = self._reads[frame.ref] = [(n, o) for n, o in read if o.name in self.names]
        return found

    def read_by(self, frame: Frame, operation: s.Attribute) -> FunctionValue | None:
        """The property that reading an attribute runs; for an unknown object, the only method of that name."""
        values = self.ev.value(frame, operation.base)
        owners = [value for value in values if isinstance(value, Instance)]
        if owners:
            return self.ev.objects.getter(owners[0], operation.name) if len(owners) == 1 else None
        known = () if is_common(operation.name) else self.ev.project.methods_by_name.get(operation.name, ())
        owner = self.ev.project.enclosing_class(known[0]) if len(known) == 1 else None
        return self._of_class(owner, operation.name) if owner is not None else None
