"""Finds code that its author expects to fail: under `pytest.raises`, `assertRaises`, or a handler for that error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Collection, External, Frame, Values
from spmdlint.program import summary as s

# `mock.patch("jax.lax.psum", ...)`: the name refers to a replacement.
RAISING = frozenset(
    ("raises", "assertRaises", "assertRaisesRegex", "assert_raises", "assertRaisesWithPredicateMatch", "patch")
)
"""Names of the functions that expect an exception."""

_PATCHING = frozenset(("object", "dict"))
"""The attributes of `patch` that replace something: `patch.object(lax, "psum")`."""
_FAR = 40
"""A call follows its arguments within this number of operations."""


def expects_failure(evaluator: Evaluator, frame: Frame, number: int) -> bool:
    """Whether the author expects any exception at an operation, or replaces the function that it would call."""
    if not evaluator.heeds_intent:
        return False
    function = evaluator.function(frame)
    if frame.outer is not None and function.kind in ("lambda", "function"):
        for use in _uses(frame.outer.code, function):
            if expects_failure(evaluator, frame.outer, use):
                return True
        called = _calls(frame.outer.code, function)
        if called and all(expects_failure(evaluator, frame.outer, number) for number in called):
            return True
    raising = _raising(frame.code)
    if not raising:
        return False
    for entered, operation in frame.code.entered:
        end = frame.code.left.get(operation.manager, len(function.operations))
        if entered < number < end and operation.manager in raising:
            return True
    near = [call for at, call in raising.items() if number < at < number + _FAR]
    return any(function.holds(argument.value, number) for call in near for argument in call.arguments)


def _uses(outer: Code, function: s.Function) -> Sequence[int]:
    """Where a function is passed as a value: a lambda where it is made, a `def` where its name is passed."""
    if function.kind == "lambda":
        return outer.made_at.get(function.index, ())
    loads = outer.loads.get(function.name, ())
    return loads if loads and all(number in outer.passed for number in loads) else ()


def _calls(outer: Code, function: s.Function) -> Sequence[int]:
    """Where a `def` is called by its name; nothing if it is used in any other way."""
    loads = outer.loads.get(function.name, ())
    return loads if function.kind == "function" and all(number in outer.called for number in loads) else ()


def _raising(code: Code) -> Mapping[int, s.Call]:
    """The calls that expect exceptions from their arguments or block, or replace the function that would be called."""
    found = code.calls_named(RAISING)
    patching = code.calls_named(_PATCHING)
    return {**found, **{n: call for n, call in patching.items() if _of_patch(code, call)}} if patching else found


def _of_patch(code: Code, call: s.Call) -> bool:
    method = code.operations[call.function]
    base = code.operations[method.base] if isinstance(method, s.Attribute) else None
    return isinstance(base, (s.Attribute, s.Load)) and base.name in RAISING


def handles(evaluator: Evaluator, frame: Frame, number: int, *errors: str) -> bool:
    """Whether one of these built-in errors, if raised here, is caught in the same function."""
    wanted = {f"builtins.{name}" for name in (*errors, "Exception", "BaseException")}
    return _suppressed(evaluator, frame, number, wanted) or any(
        clause.kind is None or catches(evaluator.value(frame, clause.kind), wanted)
        for clause in clauses_around(frame.code.function, number)
    )


def clauses_around(function: s.Function, number: int) -> Iterator[s.Caught]:
    """The clauses of each `try` around an operation, up to where its exceptions leave the function."""
    pending = [edge.target for edge in function.blocks[function.block_of[number]].edges if edge.kind == "except"]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        test = function.blocks[current].test
        caught = function.operations[test] if test is not None else None
        if isinstance(caught, s.Caught):
            yield caught
            pending.extend(edge.target for edge in function.blocks[current].edges if edge.kind == "false")


def _suppressed(evaluator: Evaluator, frame: Frame, number: int, wanted: set[str]) -> bool:
    """Whether an operation is inside a `with contextlib.suppress(...)` for one of these errors."""
    for manager in managers_around(frame, number):
        kinds = [evaluator.value(frame, argument.value) for argument in manager.arguments]
        callee = evaluator.value(frame, manager.function)
        if External("contextlib.suppress") in callee and any(catches(kind, wanted) for kind in kinds):
            return True
    return False


def managers_around(frame: Frame, number: int) -> Iterator[s.Call]:
    """The calls that make the context managers of the `with` statements around an operation."""
    operations = frame.code.operations
    for entered, operation in frame.code.entered:
        manager = operations[operation.manager]
        end = frame.code.left.get(operation.manager, len(operations))
        if entered < number < end and isinstance(manager, s.Call):
            yield manager


def catches(kinds: Values, wanted: set[str]) -> bool:
    """Whether an `except` clause for these classes, or tuples of classes, catches one of those wanted, by full name."""
    for kind in kinds:
        if isinstance(kind, Collection):
            if any(catches(element, wanted) for element in kind.elements):
                return True
        elif isinstance(kind, External) and kind.name in wanted:
            return True
    return False
