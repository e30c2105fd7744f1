"""Which expressions can only be numbers, whose hashes are the same everywhere, and which are strings."""

from __future__ import annotations

from spmdlint.analysis.evaluation.annotations import Annotations
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, External, Frame, Instance, Value, certain
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

NUMBER_MAKERS = frozenset(names("number_makers"))
_ATTRIBUTES = frozenset(("shape", "ndim", "size", "itemsize", "process_index", "id"))
_ARITHMETIC = frozenset(("-", "*", "//", "**", "/", "+", "%", "<<", ">>"))
_DEPTH = 8
_NUMERIC = frozenset(map(External, names("numeric_types")))


def numbers(evaluator: Evaluator, frame: Frame, elements: tuple[int, ...]) -> bool:
    """Whether all of these are certainly numbers, or tuples of numbers; False if there are none."""
    return bool(elements) and all(number(evaluator, frame, element) for element in elements)


def number(evaluator: Evaluator, frame: Frame, value: int, depth: int = _DEPTH) -> bool:
    """Whether the value is certainly a number, a boolean or a tuple of them."""
    if depth == 0:
        return False
    function = evaluator.function(frame)
    operation = function.operations[value]
    if isinstance(operation, s.Const):
        return isinstance(operation.value, (int, float))
    if isinstance(operation, s.Attribute):
        return operation.name in _ATTRIBUTES
    if isinstance(operation, s.Subscript):
        return number(evaluator, frame, operation.base, depth - 1)
    if isinstance(operation, s.Binary):
        sides = [number(evaluator, frame, side, depth - 1) for side in (operation.left, operation.right)]
        return operation.operator in _ARITHMETIC and all(sides)
    if isinstance(operation, s.Compare):
        return True
    if isinstance(operation, s.Display):
        return operation.kind == "tuple" and all(number(evaluator, frame, e, depth - 1) for e in operation.elements)
    if isinstance(operation, s.Call):
        callees = evaluator.value(frame, operation.function)
        if callees and all(isinstance(c, External) and c.name in NUMBER_MAKERS for c in callees):
            return True
    if isinstance(operation, s.Load):
        stores = evaluator.reaching(frame, value, operation.name)
        return bool(stores) and all(number(evaluator, frame, store, depth - 1) for store in stores)
    if isinstance(operation, s.Store):
        return number(evaluator, frame, operation.value, depth - 1)
    if isinstance(operation, s.Next) and _from_range(evaluator, frame, operation.iterable):
        return True
    if isinstance(operation, s.Parameter):
        return evaluator.objects.annotations.class_of_parameter(frame, operation.name) in _NUMERIC
    values = evaluator.value(frame, value)
    return bool(values) and all(_is_number(evaluator, each) for each in values)


def _is_number(evaluator: Evaluator, value: Value) -> bool:
    """Whether the value is a number, or a record of numbers only, whose hash is computed from theirs."""
    if not isinstance(value, Instance):
        return isinstance(value, Constant) and isinstance(value.value, (int, float))
    objects = evaluator.objects
    lineage = objects.lineage(value.cls)
    if not objects.field_names(value.cls) or any("__hash__" in evaluator.project.methods(c.ref) for c in lineage):
        return False
    bodies = [evaluator.free_frame(cls.ref) for cls in lineage]
    fields = [
        (body, o.annotation) for body in bodies for o in body.code.operations if isinstance(o, (s.Declare, s.Store))
    ]
    kinds = [evaluator.value(body, annotation) for body, annotation in fields if annotation is not None]
    return all(len(kind) == 1 and kind <= _NUMERIC for kind in kinds)


def _from_range(evaluator: Evaluator, frame: Frame, iterable: int) -> bool:
    operation = evaluator.function(frame).operations[iterable]
    if isinstance(operation, s.Display):
        return numbers(evaluator, frame, operation.elements)
    return evaluator.may_do(frame, operation, "range")


def numbers_added(evaluator: Evaluator, frame: Frame, made: int) -> bool:
    """Whether an empty set that is made here gets only numbers: every ``name.add(...)`` in the function adds one.

    The same holds for a dictionary of such sets: every ``name[key].add(...)``.
    """
    function = evaluator.function(frame)
    names = {o.name for o in function.operations if isinstance(o, s.Store) and o.value == made}
    added: list[int] = []
    for operation in function.operations:
        if not isinstance(operation, s.Call) or not operation.arguments:
            continue
        method = function.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in ("add", "update"):
            base = function.operations[method.base]
            if isinstance(base, s.Subscript):
                base = function.operations[base.base]
            if isinstance(base, s.Load) and base.name in names:
                if method.name == "update":
                    return False
                added.append(operation.arguments[0].value)
    return numbers(evaluator, frame, tuple(added))


_TEXT_METHODS = frozenset("join format lower upper strip replace decode removeprefix removesuffix".split())
_NAMES = frozenset("name path key label tag __name__ __qualname__ __module__".split())


def compared_with_numbers(evaluator: Evaluator, frame: Frame, element: int) -> bool:
    """Whether the element that a loop takes is compared with a number, so that the loop goes over numbers."""
    for _, compared in frame.code.of_kind(s.Compare):
        roots = [frame.code.root_of(each) for each in compared.operands]
        if element in roots and any(number(evaluator, frame, each) for each in roots if each != element):
            return True
    return False


_NESTED = 2
"""The most tuples inside one another; one may even be made of itself."""


def names_something(evaluator: Evaluator, frame: Frame, value: int, depth: int = _NESTED) -> bool:
    """Whether the value is certainly a string, is called a name or a path, or is a tuple or a sum with such a value."""
    root = frame.code.root_of(value)
    if root != value and names_something(evaluator, frame, root, depth):
        return True
    operation = evaluator.function(frame).operations[value]
    if isinstance(operation, s.FString) or _is_declared_text(evaluator, frame, operation):
        return True
    if isinstance(operation, s.Display) and operation.kind == "tuple":
        return depth > 0 and any(names_something(evaluator, frame, e, depth - 1) for e in operation.elements)
    if isinstance(operation, s.Binary) and operation.operator == "+" and depth > 0:
        sides = (operation.left, operation.right)  # a string can be added to nothing but a string
        named = any(names_something(evaluator, frame, side, depth - 1) for side in sides)
        return named and not any(number(evaluator, frame, side) for side in sides)
    if isinstance(operation, (s.Load, s.Attribute)):
        called = operation.name.partition("#")[0]
        if called in _NAMES or called.lower().rsplit("_", 1)[-1] in _NAMES:
            return True
    if isinstance(operation, s.Call):
        method = evaluator.function(frame).operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in _TEXT_METHODS:
            return True
        return evaluator.may_call(frame, operation, "builtins.str", "builtins.repr")
    values = evaluator.value(frame, value)
    return bool(values) and all(isinstance(v, Constant) and isinstance(v.value, str) for v in values)


def _is_declared_text(ev: Evaluator, frame: Frame, operation: s.Operation) -> bool:
    """Whether a value is a parameter that is annotated as a string."""
    written = Annotations.written(frame, operation.name) if isinstance(operation, s.Parameter) else None
    return written is not None and certain(ev.value(*written)) == External("builtins.str")
