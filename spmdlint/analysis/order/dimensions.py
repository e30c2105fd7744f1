"""Dimensions that traced code lists in the order of a set of names: each process then compiles a different program.

``[names.index(n) for n in set(left) & set(right)]``. Sets of numbers have the same order everywhere, so only sets whose
elements are certainly text count: most sets of dimensions hold numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed, passed_to
from spmdlint.analysis.evaluation.elements import elements
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Constant, External, Frame, Site, Value
from spmdlint.analysis.order.sets import SetOrder
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

_DEPTH = 6
# Only text has these methods.
_OF_TEXT = frozenset("split rsplit splitlines translate startswith endswith lower upper strip find rfind".split())
_MADE_OF_TEXT = frozenset("split rsplit splitlines translate lower upper strip replace join format partition".split())


class ListedDimensions(Struct, frozen=True):
    """A call, the argument that lists dimensions in set order, and why."""

    call: Site
    argument: Site
    name: str
    reason: Reason


class HeldOrder(SetOrder):
    """The value is a set, lists one in its order, or holds such a list: ``((left, right), ())``, ``"".join(names)``."""

    def step(
        self, origins: Origins, frame: Frame, number: int, operation: s.Operation
    ) -> Reason | Literal["continue"] | None:
        if isinstance(operation, s.Display) and operation.kind != "set":
            return origins.any_of(frame, operation.elements)
        if isinstance(operation, s.FString):
            return origins.any_of(frame, operation.parts)
        if isinstance(operation, s.Collected) and operation.kind == "list":
            held = origins.of(frame, operation.element)
            if held is not None:
                return held
        if isinstance(operation, s.Call) and len(operation.arguments) == 1:
            method = frame.code.operations[operation.function]
            if isinstance(method, s.Attribute) and method.name == "join":
                return origins.of(frame, operation.arguments[0].value)
        return super().step(origins, frame, number, operation)


def listed_dimensions(
    evaluator: Evaluator, reach: Reach, held: Origins, table: Mapping[str, tuple[tuple[int, str], ...]]
) -> Iterator[ListedDimensions]:
    """Every such argument in traced code."""
    for ref in reach.calling(table):
        if ref not in reach.traced:
            continue
        frame = evaluator.free_frame(ref)
        for number, call in frame.code.calls_in(sorted(evaluator.live_blocks(frame))):
            for callee in evaluator.value(frame, call.function):
                for position, keyword in table.get(callee.name, ()) if isinstance(callee, External) else ():
                    value = passed(call, keyword, (*("",) * position, keyword))
                    reason = held.of(frame, value) if value is not None else None
                    if value is not None and reason is not None and _of_text(evaluator, reach, reason.source.site):
                        name = callee.name if isinstance(callee, External) else ""
                        yield ListedDimensions(Site(ref, number), Site(ref, value), name, reason)


def _of_text(evaluator: Evaluator, reach: Reach, site: Site) -> bool:
    """Whether a set is made of text: of letters, or of names that were split off."""
    frame = evaluator.free_frame(site.ref)
    made = frame.code.operations[site.number]
    if isinstance(made, s.Call) and len(made.arguments) == 1:
        return _is_text(evaluator, reach, frame, made.arguments[0].value, _DEPTH)
    if isinstance(made, s.Display):
        return all(_is_text(evaluator, reach, frame, element, _DEPTH) for element in made.elements)
    return isinstance(made, s.Collected) and _is_text(evaluator, reach, frame, made.element, _DEPTH)


def _is_text(evaluator: Evaluator, reach: Reach, frame: Frame, number: int, depth: int) -> bool:
    """Whether a value is text, or a list of texts."""
    if depth == 0:
        return False
    number = frame.code.root_of(number)
    operation = frame.code.operations[number]
    values = evaluator.value(frame, number)
    if values and all(map(_says_text, values)):
        return True
    if isinstance(operation, s.FString):
        return True
    if isinstance(operation, (s.Item, s.Subscript, s.Next)):
        inner = operation.value if isinstance(operation, s.Item) else None
        inner = operation.base if isinstance(operation, s.Subscript) else inner
        inner = operation.iterable if isinstance(operation, s.Next) else inner
        return inner is not None and _is_text(evaluator, reach, frame, inner, depth - 1)
    if isinstance(operation, s.Call):
        method = frame.code.operations[operation.function]
        return isinstance(method, s.Attribute) and method.name in _MADE_OF_TEXT
    if isinstance(operation, s.Parameter):
        return _treated_as_text(frame, number) or _passed_as_text(evaluator, reach, frame, operation.name, depth)
    return False


def _says_text(value: Value) -> bool:
    if isinstance(value, External):
        return value.name.startswith("string.")  # string.ascii_letters
    return isinstance(value, Constant) and isinstance(value.value, str)


def _passed_as_text(evaluator: Evaluator, reach: Reach, frame: Frame, name: str, depth: int) -> bool:
    """Whether some call passes text, directly or as one of the results of a function: ``dims(*parse(equation))``."""
    function = frame.code.function
    position = next((n for n, formal in enumerate(function.formals) if formal.name == name), 0)
    for edge in reach.callers.get(frame.ref, ()):
        call = edge.caller.code.operations[edge.number]
        if not isinstance(call, s.Call):
            continue
        given = passed_to(function, call, name, bound=False)
        places = [(edge.caller, given)] if given is not None else []
        if len(call.arguments) == 1 and call.arguments[0].star == "*":
            places = list(elements(evaluator, edge.caller, call.arguments[0].value, position))
        if any(_is_text(evaluator, reach, where, value, depth - 1) for where, value in places):
            return True
    return False


def _treated_as_text(frame: Frame, number: int) -> bool:
    """Whether a function calls a method of its parameter that only text has."""
    for _, method in frame.code.of_kind(s.Attribute):
        if method.name in _OF_TEXT and frame.code.root_of(method.base) == number:
            return True
    return False
