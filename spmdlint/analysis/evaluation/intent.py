"""Code whose author expects it to fail: under `pytest.raises`, `assertRaises`, or a handler for the very error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Collection, Constant, External, Frame, Values, certain
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

# `mock.patch("jax.lax.psum", ...)`: what is called is not what stands there.
RAISING = frozenset(
    ("raises", "assertRaises", "assertRaisesRegex", "assert_raises", "assertRaisesWithPredicateMatch", "patch")
)
"""Names of what expects an exception."""

_PATCHING = frozenset(("object", "dict"))
"""What `patch` has besides: `patch.object(lax, "psum")`."""
_FAR = 40
"""A call stands fewer operations behind what it is given."""


def expects_failure(evaluator: Evaluator, frame: Frame, number: int) -> bool:
    """Does an operation stand where its author expects an exception of any kind, or replaces what it would call."""
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
    return any(_holds(function, call, number) for at, call in raising.items() if number < at < number + _FAR)


def expects_failure_later(evaluator: Evaluator, ref: FunctionRef, number: int) -> bool:
    """Does the same function expect an exception further on, maybe of what is made here for it."""
    return evaluator.heeds_intent and any(at > number for at in _raising(evaluator.code(ref)))


def _uses(outer: Code, function: s.Function) -> Sequence[int]:
    """Where a function is handed on as a value: a lambda where it is made, a `def` where its name is passed."""
    if function.kind == "lambda":
        return outer.made_at.get(function.index, ())
    loads = outer.loads.get(function.name, ())
    return loads if loads and all(number in outer.passed for number in loads) else ()


def _calls(outer: Code, function: s.Function) -> Sequence[int]:
    """Where a `def` is called by its name; nothing if it is used in any other way."""
    loads = outer.loads.get(function.name, ())
    return loads if function.kind == "function" and all(number in outer.called for number in loads) else ()


def _raising(code: Code) -> Mapping[int, s.Call]:
    """The calls that expect exceptions of what they hold, or replace what it would call."""
    found = code.calls_named(RAISING)
    patching = code.calls_named(_PATCHING)
    return {**found, **{n: call for n, call in patching.items() if _of_patch(code, call)}} if patching else found


def _of_patch(code: Code, call: s.Call) -> bool:
    method = code.operations[call.function]
    base = code.operations[method.base] if isinstance(method, s.Attribute) else None
    return isinstance(base, (s.Attribute, s.Load)) and base.name in RAISING


def _holds(function: s.Function, call: s.Call, number: int) -> bool:
    """Is an operation part of an argument of a call, by where it stands in the text."""
    return any(function.holds(argument.value, number) for argument in call.arguments)


def decorated_with(evaluator: Evaluator, frame: Frame | None, word: str) -> bool:
    """Does a decorator that no library is known for take a word, on the function of a frame or one around it.

    `@with_mesh(("data",))` may bind what it names around all that the function does.
    """
    while frame is not None and frame.outer is not None:
        outer = evaluator.function(frame.outer)
        made = set(frame.outer.code.made_at.get(frame.ref.index, ()))
        for number, operation in enumerate(outer.operations):
            if not isinstance(operation, s.Call) or not operation.decorator or not operation.arguments:
                continue
            if operation.arguments[0].value in made:
                made.add(number)
                if _takes(evaluator, frame.outer, operation.function, word):
                    return True
        frame = frame.outer
    return False


def _takes(evaluator: Evaluator, frame: Frame, number: int, word: str) -> bool:
    """Is a decorator a call that is given a word, and none of a library that is known."""
    call = evaluator.function(frame).operations[number]
    if not isinstance(call, s.Call):
        return False
    made_by = certain(evaluator.value(frame, call.function))
    if isinstance(made_by, External) and evaluator.knowledge.get(made_by.name) is not None:
        return False
    return any(_spells(evaluator.value(frame, argument.value), word) for argument in call.arguments)


def _spells(values: Values, word: str) -> bool:
    return any(
        value == Constant(word) or (isinstance(value, Collection) and any(_spells(e, word) for e in value.elements))
        for value in values
    )


def handles_unbound_names(evaluator: Evaluator, frame: Frame, number: int) -> bool:
    """Is a NameError from here caught in the same function, as code does that probes for an axis."""
    return handles(evaluator, frame, number, "NameError")


def handles(evaluator: Evaluator, frame: Frame, number: int, *errors: str) -> bool:
    """Is one of these built-in errors caught in the same function if it comes from here."""
    wanted = {f"builtins.{name}" for name in (*errors, "Exception", "BaseException")}
    return _suppressed(evaluator, frame, number, wanted) or any(
        clause.kind is None or catches(evaluator.value(frame, clause.kind), wanted)
        for clause in clauses_around(frame.code.function, number)
    )


def clauses_around(function: s.Function, number: int) -> Iterator[s.Caught]:
    """The clauses of each `try` that an operation stands in, up to where its exceptions leave the function."""
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
    """Is an operation inside of `with contextlib.suppress(...)` for one of these errors."""
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
    """Does a clause for these classes, or for tuples of them, catch one of those wanted, by their full names."""
    for kind in kinds:
        if isinstance(kind, Collection):
            if any(catches(element, wanted) for element in kind.elements):
                return True
        elif isinstance(kind, External) and kind.name in wanted:
            return True
    return False
