"""Where objects with a generated constructor (dataclasses and the like) are made, and with which field values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import ClassValue, Frame, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class Constructed:
    """The constructions of dataclasses and the like in the whole project. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator

    def given(self, cls: ClassValue, name: str) -> Iterator[tuple[Frame, int, int]]:
        """The calls that construct a class or a subclass of it, each with the value that it passes for a field."""
        for made in (cls, *self.ev.objects.subclasses.get(cls.ref, ())):
            calls = self._calls.get(made.ref, ())
            names = self.ev.objects.field_names(made) if calls else None
            if names is None or name not in names:
                continue
            for frame, number, operation in calls:
                value = passed(operation, name, tuple(names))
                if value is not None:
                    yield frame, number, value

    @cached_property
    def _calls(self) -> dict[FunctionRef, list[tuple[Frame, int, s.Call]]]:
        found: dict[FunctionRef, list[tuple[Frame, int, s.Call]]] = {}
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                made = certain(self.ev.value(frame, operation.function)) if operation.arguments else None
                if isinstance(made, ClassValue):
                    found.setdefault(made.ref, []).append((frame, number, operation))
        return found
