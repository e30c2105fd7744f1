"""Whether a condition chooses process 0, for rules of one's own: followed into functions, properties and imports."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, FunctionValue, Instance, certain
from spmdlint.analysis.variance.conditions import IS_FIRST, Conditions
from spmdlint.analysis.variance.origins import Origins
from spmdlint.facts import Answer, all_of, any_of
from spmdlint.program import summary as s

_DEPTH = 8


class FirstProcess:
    """Recognises such conditions. One per run."""

    def __init__(self, evaluator: Evaluator, content: Origins) -> None:
        self.ev = evaluator
        self.content = content
        self.conditions = Conditions(evaluator)

    def chosen(self, frame: Frame, test: int, *, holds: bool, depth: int = _DEPTH) -> Answer:
        """Whether a condition that holds, or does not, says that this is process 0; *no*: that it is another one."""
        known = self.conditions.facts(frame, test, holds).get(IS_FIRST)
        if known is not None:
            return "yes" if known else "no"
        operation = frame.code.operations[frame.code.root_of(test)]
        if depth == 0:
            return "unknown"
        if isinstance(operation, s.Unary) and operation.operator == "not":
            return self.chosen(frame, operation.operand, holds=not holds, depth=depth - 1)
        if isinstance(operation, s.BoolOp):
            parts = [self.chosen(frame, each, holds=holds, depth=depth - 1) for each in operation.operands]
            return any_of(parts) if holds == (operation.operator == "and") else all_of(parts)
        made = list(self._made(frame, operation))
        return all_of(self.chosen(*each, holds=holds, depth=depth - 1) for each in made) if made else "unknown"

    def _made(self, frame: Frame, operation: s.Operation) -> Iterator[tuple[Frame, int]]:
        """Where the value of a call, a property or an imported name is made, if there is only one such place."""
        if isinstance(operation, s.Import):
            target = self.content.import_target(frame, operation)
            if target is not None and len(target[1]) == 1:
                yield target[0], next(iter(target[1]))
        if isinstance(operation, s.Load) and frame.code.scope_of(operation.name) is None:
            top = self.ev.free_frame(self.ev.project.ref(frame.ref.path, 0))
            kept = top.code.function.stores.get(operation.name, ())
            if len(kept) == 1:
                yield top, kept[0]
        function = None
        if isinstance(operation, s.Call):
            function = certain(self.ev.value(frame, operation.function))
        elif isinstance(operation, s.Attribute):
            owner = certain(self.ev.value(frame, operation.base))
            function = self.ev.objects.getter(owner, operation.name) if isinstance(owner, Instance) else None
        if isinstance(function, FunctionValue):
            inner = self.ev.free_frame(function.ref)
            returned = [given.value for _, given in inner.code.returns]
            if len(returned) == 1 and returned[0] is not None:
                yield inner, returned[0]
