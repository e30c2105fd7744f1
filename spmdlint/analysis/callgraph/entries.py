"""The frames of a function that carry more information: with functions bound, or with the method's subclass known."""

from __future__ import annotations

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    DictionaryValue,
    Frame,
    FunctionValue,
    Instance,
    Value,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

MAX_DERIVED = 4
"""The most subclasses for which an inherited method is examined."""
MAX_FRAMES = 64
"""The most frames of one function that are kept besides the free frame."""


class Entries:
    """Those frames by function. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach) -> None:
        self.ev = evaluator
        self._frames: dict[FunctionRef, list[Frame]] = {}
        for frame in reach.frames:
            if len(self._frames.get(frame.ref, ())) < MAX_FRAMES and _binds_functions(frame):
                self._frames.setdefault(frame.ref, []).append(frame)

    def of(self, ref: FunctionRef) -> list[Frame]:
        """The frames in which a parameter is bound to a function, and those of a method in subclasses."""
        return [*self._frames.get(ref, ()), *self._inherited(ref)]

    def _inherited(self, ref: FunctionRef) -> list[Frame]:
        """The frames of an inherited method in the subclasses that define what it uses: a template method."""
        objects, project = self.ev.objects, self.ev.project
        owner = project.enclosing_class(ref)
        function = project.function(ref)
        if owner is None or not function.formals or owner not in objects.subclasses:
            return []
        used = _attributes_of(function, function.formals[0].name)
        found: list[Frame] = []
        for derived in objects.subclasses[owner]:
            own = project.methods(derived.ref)
            if function.name not in own and used & own.keys() and len(found) < MAX_DERIVED:
                found.append(objects.method_frame(ref, Instance(derived), objects.class_of(owner)))
        return found


def _attributes_of(function: s.Function, receiver: str) -> set[str]:
    operations = function.operations
    return {
        o.name
        for o in operations
        if isinstance(o, s.Attribute) and isinstance(base := operations[o.base], s.Load) and base.name == receiver
    }


def _binds_functions(frame: Frame) -> bool:
    """Whether a parameter, here or of an enclosing function, is bound to a function or to a list of functions."""
    current: Frame | None = frame
    while current is not None:
        for values in current.given:
            if any(_is_code(value) or _lists_code(value) for value in values):
                return True
        current = current.outer
    return False


def _is_code(value: Value) -> bool:
    return isinstance(value, (FunctionValue, Applied, Instance))


def _lists_code(value: Value) -> bool:
    if isinstance(value, Collection):
        return any(_is_code(each) for values in value.elements for each in values)
    return isinstance(value, DictionaryValue) and any(_is_code(each) for _, values in value.items for each in values)
