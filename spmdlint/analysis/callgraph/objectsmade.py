"""Objects that are made with code to run: what their methods run, whoever calls them.

A trainer is made with a list of hooks in one place, handed on through what nobody can follow, and trains in another.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    Arguments,
    Collection,
    DictionaryValue,
    Frame,
    FunctionValue,
    Instance,
    Values,
    certain,
)


def holds_code(evaluator: Evaluator, arguments: Arguments) -> bool:
    """Is a constructor given functions or objects of the project, itself or in a list; records are no such objects."""
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
    """The frames of an object's methods, with nothing known of what else they are given."""
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
