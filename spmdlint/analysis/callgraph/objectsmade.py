"""Objects that are constructed with code to run: the frames of their methods, whoever calls them.

For example, a trainer is constructed with a list of hooks in one place, passed on in a way that cannot be followed, and
trains in another place.
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
