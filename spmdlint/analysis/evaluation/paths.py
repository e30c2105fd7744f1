"""Which calls list a directory: methods of paths, recognised by their name or by how the path is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation.values import Applied, Constant, External, Frame, certain, constant
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator

# Recognised on unknown objects: no other common class has methods of these names.
_LISTERS = frozenset(("iterdir", "rglob"))
# Recognised on paths only: the file systems of fsspec have such a method as well, and they sort.
_PATHS_LIST = frozenset(("glob",))
PATHS = frozenset(names("paths"))
_GIVE_PATHS = frozenset("expanduser resolve absolute joinpath with_name with_suffix".split())
_DEPTH = 6


def lists_folder(evaluator: Evaluator, frame: Frame, method: s.Attribute) -> bool:
    """Whether a method lists a directory, in whatever order the file system gives."""
    if method.name in _LISTERS:
        return True
    return method.name in _PATHS_LIST and _is_path(evaluator, frame, method.base, _DEPTH)


def _is_path(evaluator: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    """Whether a value is certainly a path: made by the class, annotated as one, or joined with a string by ``/``."""
    made = certain(evaluator.value(frame, number))
    if isinstance(made, Applied):
        return made.name in PATHS
    if not depth:
        return False
    operation = frame.code.operations[frame.code.root_of(number)]
    if isinstance(operation, s.Binary) and operation.operator == "/":
        sides = (operation.left, operation.right)
        return any(_is_text(evaluator, frame, side) or _is_path(evaluator, frame, side, depth - 1) for side in sides)
    if isinstance(operation, s.Attribute) and operation.name == "parent":
        return _is_path(evaluator, frame, operation.base, depth - 1)
    if isinstance(operation, s.Call):
        method = frame.code.operations[operation.function]
        gives = isinstance(method, s.Attribute) and method.name in _GIVE_PATHS
        return gives and isinstance(method, s.Attribute) and _is_path(evaluator, frame, method.base, depth - 1)
    if not isinstance(operation, s.Parameter):
        return False
    declared = evaluator.objects.annotations.class_of_parameter(frame, operation.name)
    return isinstance(declared, External) and declared.name in PATHS


def _is_text(evaluator: Evaluator, frame: Frame, number: int) -> bool:
    value = constant(evaluator.value(frame, number))
    return isinstance(value, Constant) and isinstance(value.value, str)
