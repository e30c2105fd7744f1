"""How functions are entered: frames with functions bound or the method's subclass known, and what leads to a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

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
from spmdlint.program.link import FunctionRef, Module, Project

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

    def frames(self, ref: FunctionRef) -> list[Frame]:
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


def upstream(project: Project, reach: Reach, names: Iterable[str]) -> set[FunctionRef]:
    """Every function that may reach a call of one of these names; an over-approximation."""
    found: set[FunctionRef] = set()
    pending = reach.calling(names)
    if not pending:
        return found
    entered = _entered(project)
    while pending:
        ref = pending.pop()
        if ref not in found:
            found.add(ref)
            pending.extend(edge.caller.ref for edge in reach.callers.get(ref, ()))
            pending.extend(entered.get(ref, ()))
    return found


def imported(project: Project, module: Module, operation: s.Import) -> Iterator[Path]:
    """The files of the project that run when a name is imported, packages first."""
    dotted = project.absolute(module, operation.module, operation.level)
    names = [dotted, f"{dotted}.{operation.name}"] if operation.name is not None else [dotted]
    parts = dotted.split(".")
    for name in [".".join(parts[:end]) for end in range(1, len(parts))] + names:
        path = project.find_module(name, module)
        if path is not None and path != module.path:
            yield path


def _entered(project: Project) -> dict[FunctionRef, list[FunctionRef]]:
    """The functions that run a module by importing it, or a class body by defining the class."""
    found: dict[FunctionRef, list[FunctionRef]] = {}
    for path, module in project.modules.items():
        for function in module.summary.functions:
            ref = FunctionRef(path, function.index)
            for operation in function.operations:
                if not isinstance(operation, (s.Import, s.MakeClass)):
                    continue
                if isinstance(operation, s.Import):
                    for other in imported(project, module, operation):
                        found.setdefault(FunctionRef(other, 0), []).append(ref)
                else:
                    found.setdefault(FunctionRef(path, operation.body), []).append(ref)
    return found
