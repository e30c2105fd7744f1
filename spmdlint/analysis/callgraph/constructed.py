"""Objects that are constructed: the code that their constructors run, and that they are given to run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec.structs import replace

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    UNKNOWN,
    Applied,
    Arguments,
    ClassValue,
    Collection,
    DictionaryValue,
    Frame,
    Free,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    Values,
    certain,
)
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

MAX_KEPT = 16
"""The most constructions to search for what they keep; with more of them, the object cannot be identified."""


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

    def spreading(self, cls: ClassValue) -> Iterator[tuple[Frame, int]]:
        """The calls that construct a class with a dictionary of further fields: ``cls(step=0, **kwargs)``."""
        for frame, number, operation in self._calls.get(cls.ref, ()):
            if any(argument.star == "**" for argument in operation.arguments):
                yield frame, number

    def may_call(self, frame: Frame, call: s.Call) -> Values:
        """What a call may call, as the evaluator says; all that a field of an unknown record may hold."""
        found = self.ev.value(frame, call.function)
        held = any(isinstance(each, Free) for each in found)
        return frozenset(self.callees(frame, call.function)) if held else found

    def called(self, frame: Frame, call: s.Call) -> Values:
        """The same, if all such records hold one function in that field; else what the evaluator says."""
        found = self.may_call(frame, call)
        return found if len(found) == 1 else self.ev.value(frame, call.function)

    def callees(self, frame: Frame, number: int) -> list[Value]:
        """What a call may call, by its function operand; a field of an unknown object is what constructors got."""
        values = [each for value in ordered(self.ev.value(frame, number)) for each in self._implemented(value)]
        field = frame.code.operations[number]
        if not isinstance(field, s.Attribute) or not all(isinstance(each, (Free, Unknown)) for each in values):
            return values
        owners = self.ev.objects.by_name.owners(frame, field.base, field.name)
        kept: list[Value] = []
        for owner in ordered(owners):
            given = list(self.given(owner.cls, field.name)) if isinstance(owner, Instance) else []
            if len(given) > MAX_KEPT:
                return values
            for where, _, value in given:
                function = certain(self.ev.value(where, value)) or UNKNOWN
                if isinstance(function, (FunctionValue, Applied, Unknown)):
                    kept.append(function)
        return kept if any(not isinstance(each, Unknown) for each in kept) else values

    def _implemented(self, value: Value) -> list[Value]:
        """The methods that may stand for an abstract one; any other value itself."""
        if not isinstance(value, FunctionValue):
            return [value]
        made = self.ev.objects.abstract.implementations(value.ref)
        return [replace(value, ref=ref) for ref in made] or [value]

    @cached_property
    def _calls(self) -> dict[FunctionRef, list[tuple[Frame, int, s.Call]]]:
        found: dict[FunctionRef, list[tuple[Frame, int, s.Call]]] = {}
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for number, operation in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                made = self.ev.callee(frame, operation) if operation.arguments else None
                if isinstance(made, ClassValue):
                    found.setdefault(made.ref, []).append((frame, number, operation))
        return found


def holds_code(evaluator: Evaluator, arguments: Arguments) -> bool:
    """Whether a constructor is passed functions or project objects, directly or in a list; records do not count."""
    given = (*arguments.positional, *(values for _, values in arguments.keywords))
    return any(_is_code(evaluator, values) for values in given)


def _is_code(evaluator: Evaluator, values: Values) -> bool:
    for value in values:
        if isinstance(value, FunctionValue):
            return True
        if isinstance(value, Instance) and not evaluator.objects.field_names(value.cls):
            return True
        if isinstance(value, Collection) and any(_is_code(evaluator, element) for element in value.elements):
            return True
        if isinstance(value, DictionaryValue) and any(_is_code(evaluator, each) for _, each in value.items):
            return True
    return False


def method_frames(evaluator: Evaluator, instance: Instance) -> Iterator[Frame]:
    """The frames of an object's methods, whose other parameters are free."""
    objects = evaluator.objects
    seen: set[str] = set()
    for cls in objects.lineage(instance.cls):
        for name, method in evaluator.project.methods(cls.ref).items():
            special = name.startswith("__") and name != "__call__"
            if special or name in seen:
                continue
            seen.add(name)
            found = certain(objects.attribute(instance, name))
            if isinstance(found, FunctionValue) and found.ref == method and found.receiver == instance:
                yield objects.method_frame(method, instance, cls)
