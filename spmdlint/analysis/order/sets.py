"""Which values come in an order that differs between processes: sets, and what is listed from them.

Python seeds the hash of strings differently in each process. A set of numbers only has the same order everywhere. Of an
annotation, only elements that are named decide: ``set``, ``set[T]`` and ``set[Any]`` say nothing about them.
"""

from __future__ import annotations

import re

from spmdlint.analysis.evaluation.elements import elements, in_rounds
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.numeric import NUMBER_MAKERS, numbers, numbers_added
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through, through_method
from spmdlint.analysis.evaluation.values import (
    Applied,
    Collection,
    Constant,
    External,
    Frame,
    FunctionValue,
    Instance,
    Site,
    certain,
)
from spmdlint.analysis.order.filling import order_of_field, order_of_filling, order_of_generator
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.elements import elements as deeds
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s

_SET_METHODS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))
_SET_OPERATORS = frozenset("|&-^")
# The devices of a sharding.
_SET_FIELDS = frozenset(("device_set",))
_MAKERS = names("set_makers")
_OF_PROCESS = frozenset(names("hashes"))
"""Functions whose results for an object differ between processes."""
_COMBINERS = frozenset(f"{maker}.{name}" for maker in _MAKERS for name in _SET_METHODS)


class SetOrder(Property):
    """The value is a set, or lists one in the set's own order."""

    one_kind = True

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        site = Site(frame.ref, number)
        if isinstance(operation, s.Display):
            if (
                operation.kind == "set"
                and len(operation.elements) > 1
                and not numbers(origins.ev, frame, operation.elements)
            ):
                return Reason(site, "a set is written here", "set")
            starred = [operation.elements[position] for position in operation.starred]
            return origins.any_of(frame, starred)
        if isinstance(operation, s.Load):
            if operation.name in frame.code.sorted_names:
                return None
            return order_of_filling(origins, frame, number, "{name} is filled in the order of the set") or CONTINUE
        if isinstance(operation, (s.Item, s.Next)):
            return self._element(origins, frame, number, operation)
        if isinstance(operation, s.Subscript):
            index = origins.ev.function(frame).operations[operation.index]
            sliced = isinstance(index, s.Slice)
            return origins.why(frame, operation.base) if sliced else _in_table(origins, frame, operation)
        if isinstance(operation, s.Collected):
            return self._collected(origins, frame, number, operation)
        if isinstance(operation, s.Binary):
            return self._combined(origins, frame, number, operation)
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        if isinstance(operation, s.Attribute):
            if operation.name in _SET_FIELDS:
                return Reason(site, f".{operation.name} is a set", "set")
            return order_of_field(origins, frame, number, "{name} is filled in the order of the set") or CONTINUE
        return CONTINUE

    def beyond(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Reason | None:
        """Why a value of which nothing else is known is a set."""
        return set_by_annotation(origins.ev, frame, number)

    @staticmethod
    def _element(origins: Origins, frame: Frame, number: int, operation: s.Item | s.Next) -> Reason | None:
        """Why an element of a tuple, or of a loop's iterable, is a set, if the elements are written out."""
        if isinstance(operation, s.Next):
            places = list(in_rounds(origins.ev, frame, number))
        else:
            places = list(elements(origins.ev, frame, operation.value, operation.index))
            places = places or list(in_rounds(origins.ev, frame, operation.value, operation.index))
        return next((found for f, n in places if (found := origins.why(f, n)) is not None), None)

    @staticmethod
    def _reduces(origins: Origins, frame: Frame, name: str, arguments: list[int]) -> bool:
        """Whether this is ``functools.reduce(set.union, ...)``."""
        if name != "functools.reduce" or not arguments:
            return False
        return any(isinstance(v, External) and v.name in _COMBINERS for v in origins.ev.value(frame, arguments[0]))

    @staticmethod
    def _combined(origins: Origins, frame: Frame, number: int, operation: s.Binary) -> Reason | None:
        sides = (operation.left, operation.right)
        if operation.operator == "+":
            fails = any(_is_set(origins.ev, frame, side) for side in sides)
            return origins.any_of(frame, sides) if not fails else None
        if operation.operator not in _SET_OPERATORS:
            return None
        found = origins.any_of(frame, sides)
        if operation.operator == "-" and _is_set(origins.ev, frame, operation.left):
            found = origins.why(frame, operation.left)  # the difference keeps elements of the left set only
        if found is None and _is_view(origins.ev, frame, *sides):
            text = "views of dictionary keys are combined into a set here"
            return Reason(Site(frame.ref, number), text, "set")
        return found

    def _collected(self, origins: Origins, frame: Frame, number: int, operation: s.Collected) -> Reason | None:
        if operation.kind == "set":
            if numbers(origins.ev, frame, (operation.element,)):
                return None
            return Reason(Site(frame.ref, number), "a set is built here", "set")
        function = origins.ev.function(frame)
        loops = [function.operations[loop] for loop in operation.loops]
        found = origins.any_of(frame, [loop.iterable for loop in loops if isinstance(loop, s.Next)])
        return origins.step(frame, number, "it is listed in the order of the set", found)

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        site = Site(frame.ref, number)
        arguments = [argument.value for argument in operation.arguments]
        function = origins.ev.function(frame)
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if not isinstance(callee, External):
                continue
            if callee.name in _MAKERS:
                return self._made(origins, frame, site, arguments, callee.name)
            if callee.name in _COMBINERS or self._reduces(origins, frame, callee.name, arguments):
                return Reason(site, "sets are combined here", "set")
            found = origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "order"))
            if found is not None:
                short = callee.name.removeprefix("builtins.")
                return origins.step(frame, number, f"{short}() keeps the order of the set", found)
            if callee.name == "functools.reduce" and len(arguments) == 3:
                return origins.why(frame, arguments[2])  # the set that the others are combined into
            if callee.name == "builtins.sorted":
                return self._sorted(origins, frame, site, operation)
            return None
        method = function.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in _SET_METHODS:
            found = origins.why(frame, method.base)
            return origins.step(frame, number, f".{method.name}() returns a set again", found)
        kept = through_method(origins.ev, frame, operation, "order")
        if kept:
            return origins.any_of(frame, kept)
        return order_of_generator(origins, frame, number, operation) or CONTINUE

    @staticmethod
    def _sorted(origins: Origins, frame: Frame, site: Site, operation: s.Call) -> Reason | None:
        """Why ``sorted(x, key=id)`` gives an order of this process only; so does a sorted table by such numbers."""
        keys = [argument.value for argument in operation.arguments if argument.keyword == "key"]
        for table in operation.arguments[:1]:
            made = frame.code.operations[resolved(origins.ev, frame, table.value)]
            number = made.key if isinstance(made, s.Collected) else None
            call = frame.code.operations[number] if number is not None else None
            keys += [call.function] if isinstance(call, s.Call) else []
        for key in (value for each in keys for value in ordered(origins.ev.value(frame, each))):
            if isinstance(key, External) and key.name in _OF_PROCESS:
                short = key.name.removeprefix("builtins.")
                return Reason(site, f"it is sorted by {short}(), which differs between processes", "hash")
        return sorted_by_length(origins, frame, site.number, operation)

    def _made(self, origins: Origins, frame: Frame, site: Site, arguments: list[int], name: str) -> Reason | None:
        if len(arguments) == 1 and _numeric_source(origins.ev, frame, arguments[0]):
            return None
        if not arguments and numbers_added(origins.ev, frame, site.number):
            return None
        return Reason(site, f"{name.removeprefix('builtins.')}() makes a set here", "set")


def sorted_by_length(origins: Origins, frame: Frame, number: int, call: s.Call) -> Reason | None:
    """Why ``sorted(x, key=len)`` keeps the order of what it is given: those of one length stay as they were."""
    keys = [certain(origins.ev.value(frame, each.value)) for each in call.arguments if each.keyword == "key"]
    if not any(isinstance(key, External) and deeds().get(key.name) == "length" for key in keys):
        return None
    found = origins.why(frame, call.arguments[0].value)
    return (
        origins.step(frame, number, "it is sorted by length, and those of one length stay in that order", found)
        if found
        else None
    )


def _in_table(origins: Origins, frame: Frame, operation: s.Subscript) -> Reason | None:
    """Why an element of ``defaultdict(set)`` is a set."""
    table = certain(origins.ev.value(frame, operation.base))
    if not isinstance(table, Applied) or table.name != "collections.defaultdict" or not table.arguments.positional:
        return None
    made = certain(table.arguments.positional[0])
    if not isinstance(made, External) or made.name not in _MAKERS:
        return None
    if numbers_added(origins.ev, origins.ev.free_frame(table.site.ref), table.site.number):
        return None
    return Reason(table.site, f"defaultdict({made.name.removeprefix('builtins.')}) makes sets here", "set")


def _is_set(evaluator: Evaluator, frame: Frame, number: int) -> bool:
    """Whether it is written as a set, which has no operator ``+``."""
    made = evaluator.function(frame).operations[number]
    if isinstance(made, s.Call):
        return evaluator.may_call(frame, made, *_MAKERS)
    return isinstance(made, (s.Display, s.Collected)) and made.kind == "set"


def _is_view(evaluator: Evaluator, frame: Frame, *sides: int) -> bool:
    """Whether one of these is ``d.keys()`` or ``d.items()``: set operators on them give a set."""
    for side in sides:
        call = evaluator.function(frame).operations[side]
        method = evaluator.function(frame).operations[call.function] if isinstance(call, s.Call) else None
        if isinstance(call, s.Call) and isinstance(method, s.Attribute) and method.name in ("keys", "items"):
            return not call.arguments
    return False


def _numeric_source(evaluator: Evaluator, frame: Frame, number: int) -> bool:
    """Whether it is ``range(n)``, ``map(int, ...)``, or anything else that can only hold numbers."""
    operation = evaluator.function(frame).operations[number]
    if isinstance(operation, s.Call):
        if evaluator.may_do(frame, operation, "range", "numbers"):
            return True
        if operation.arguments and evaluator.may_do(frame, operation, "map"):
            mapped = evaluator.value(frame, operation.arguments[0].value)
            return any(isinstance(v, External) and v.name in NUMBER_MAKERS for v in mapped)
    if isinstance(operation, s.Collected):
        return numbers(evaluator, frame, (operation.element,))
    if isinstance(operation, s.Subscript):
        return _numeric_source(evaluator, frame, operation.base)
    if isinstance(operation, (s.Load, s.Store)):
        inner = operation.value if isinstance(operation, s.Store) else frame.code.root_of(number)
        if inner != number and _numeric_source(evaluator, frame, inner):
            return True
    for value in ordered(evaluator.value(frame, number)):
        if isinstance(value, Collection) and value.elements and not value.open:
            return all(isinstance(v, Constant) and isinstance(v.value, (int, float)) for e in value.elements for v in e)
    return False


_SETS = frozenset("set frozenset abstractset mutableset".split())  # also those of `typing`, in lower case
_HASHED_APART = frozenset("str bytes Device Path PurePath PosixPath".split())
"""Classes whose objects have different hashes in each process."""
_WRITTEN = re.compile(r"(?:\w+\.)*(?:frozen)?set\[(?:str|bytes)\](?: \| None)?", re.IGNORECASE)
"""An annotation that is written as a string."""


def set_by_annotation(ev: Evaluator, frame: Frame, number: int) -> Reason | None:
    """Why a parameter, field or result is a set whose order differs; None if no annotation says so."""
    operation, site = frame.code.operations[number], Site(frame.ref, number)
    if isinstance(operation, s.Parameter):
        written = ev.objects.annotations.written(frame, operation.name)
        text = f"{operation.name!r} is a set, by its annotation"
    elif isinstance(operation, s.Attribute):
        written = _of_field(ev, frame, operation)
        text = f".{operation.name} is a set, by its annotation"
    elif isinstance(operation, s.Call):
        written = _of_result(ev, frame, operation)
        text = "this call returns a set, by the annotation of its function"
    else:
        return None
    return Reason(site, text, "set") if written is not None and _says_set(ev, *written) else None


def _of_field(ev: Evaluator, frame: Frame, read: s.Attribute) -> tuple[Frame, int] | None:
    """The annotation of a field in the body of its class."""
    base = certain(ev.value(frame, read.base))
    for cls in ev.objects.lineage(base.cls) if isinstance(base, Instance) else ():
        body = ev.free_frame(cls.ref)
        annotation = ev.objects.annotations.of_field(body, read.name)
        if annotation is not None:
            return body, annotation
    return None


def _of_result(ev: Evaluator, frame: Frame, call: s.Call) -> tuple[Frame, int] | None:
    """The annotation of what a function of the project returns."""
    called = [callee.ref for callee in ev.value(frame, call.function) if isinstance(callee, FunctionValue)]
    if len(called) != 1 or ev.project.function(called[0]).generator:
        return None
    return ev.objects.annotations.written(ev.free_frame(called[0]), "return")


def _says_set(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether an annotation is a set of objects whose order differs between processes."""
    operation = frame.code.operations[number]
    if isinstance(operation, s.Const) and isinstance(operation.value, str):
        return _WRITTEN.fullmatch(operation.value.strip()) is not None
    if isinstance(operation, s.Binary) and operation.operator == "|":
        return _says_set(ev, frame, operation.left) or _says_set(ev, frame, operation.right)
    if not isinstance(operation, s.Subscript):
        return False
    name = _last_name(ev, frame, operation.base)
    if name in ("Optional", "Annotated", "Final"):
        return _says_set(ev, frame, operation.index)
    return name.lower() in _SETS and _is_hashed_apart(ev, frame, operation.index)


def _is_hashed_apart(ev: Evaluator, frame: Frame, element: int) -> bool:
    """Whether objects of the annotated class have different hashes in each process; for a tuple, any of its parts."""
    operation = frame.code.operations[element]
    if isinstance(operation, s.Subscript):
        parts = frame.code.operations[operation.index]
        inner = parts.elements if isinstance(parts, s.Display) else (operation.index,)
        return _last_name(ev, frame, operation.base).lower() == "tuple" and any(
            _is_hashed_apart(ev, frame, part) for part in inner
        )
    return _last_name(ev, frame, element) in _HASHED_APART


def _last_name(ev: Evaluator, frame: Frame, number: int) -> str:
    """The last part of the name of a library class; empty for a class of the project."""
    value = certain(ev.value(frame, number))
    return value.name.rpartition(".")[2] if isinstance(value, External) else ""
