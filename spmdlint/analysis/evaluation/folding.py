"""Folds operators on constants, as far as the results decide branches and spell names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    ClassValue,
    Collection,
    Constant,
    FunctionValue,
    Instance,
    Values,
    certain,
    constant,
    one,
)
from spmdlint.knowledge.files import names

MAX_REPEATED = 64
"""The most elements of a repeated list that are kept; a longer one is known only by its first elements."""
_LIMIT = 10_000  # characters or elements: "x" * 10**9 must not be computed

ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.eq,  # on constants, `is` is used only with None, True and False
    "is not": operator.ne,
}
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    **ARITHMETIC,
    **COMPARISONS,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
_MAKERS = names("array_makers")
_IDENTITY = {"is": True, "==": True, "is not": False, "!=": False}


def binary(symbol: str, left: Values, right: Values) -> Values:
    """The value of ``left symbol right``, if it is known."""
    a, b = certain(left), certain(right)
    if isinstance(a, Collection) and symbol in ("+", "*"):
        return _lengthened(symbol, a, b)
    if symbol == "%" and isinstance(a, Constant) and isinstance(b, Collection):
        parts = [constant(element) for element in b.elements]
        if b.kind == "tuple" and not b.open and isinstance(a.value, str) and all(part is not None for part in parts):
            return binary("%", left, one(Constant(tuple(part.value for part in parts if part is not None))))
    if symbol in _IDENTITY:
        answer = _same(a, b)
        if answer is not None:
            return one(Constant(answer == _IDENTITY[symbol]))
    if symbol in ("in", "not in") and isinstance(b, Collection) and isinstance(a, Constant) and not b.open:
        members = [constant(element) for element in b.elements]
        if all(member is not None for member in members):
            return one(Constant((a in members) == (symbol == "in")))
        if a in members:
            return one(Constant(symbol == "in"))
    if not isinstance(a, Constant) or not isinstance(b, Constant) or symbol not in _BINARY:
        return ANYTHING
    if symbol == "*" and (isinstance(a.value, (str, bytes)) or isinstance(b.value, (str, bytes))):
        return ANYTHING
    try:
        result = _BINARY[symbol](a.value, b.value)
    except Exception:  # a TypeError, a division by zero, a bad format: not the linter's concern
        return ANYTHING
    if isinstance(result, (str, bytes)) and len(result) > _LIMIT:
        return ANYTHING
    if isinstance(result, int) and abs(result) > 1 << 128:
        return ANYTHING
    return one(Constant(result))


def _lengthened(symbol: str, listed: Collection, other: object) -> Values:
    """The concatenation of two lists, or the repetition of one."""
    if symbol == "*":
        return _repeated(listed, other) if listed.kind in ("list", "tuple") else ANYTHING
    if isinstance(other, Collection) and listed.kind == other.kind:
        return one(Collection(listed.kind, listed.elements + other.elements, listed.open or other.open))
    return ANYTHING


def _repeated(listed: Collection, count: object) -> Values:
    """``[x] * n``: the elements are known, even if their number is not."""
    number = count.value if isinstance(count, Constant) else None
    if type(number) is int and not listed.open and 0 <= number * len(listed.elements) <= MAX_REPEATED:
        return one(Collection(listed.kind, listed.elements * number))
    return one(Collection(listed.kind, listed.elements, open=True)) if listed.elements else ANYTHING


def _same(a: object, b: object) -> bool | None:
    """Whether two certain values are the same object; decided only for None and a value that is certainly not None."""
    if a is None or b is None:
        return None
    if isinstance(a, Constant) and isinstance(b, Constant):
        return None
    for none, other in ((a, b), (b, a)):
        if isinstance(none, Constant) and none.value is None:
            from_program = isinstance(other, (FunctionValue, ClassValue, Instance, Collection))
            return False if from_program or _is_made(other) else None
    return None


def _is_made(value: object) -> bool:
    """Whether the value is an object or an array that a library made."""
    name = value.name if isinstance(value, Applied) else ""
    return name.rpartition(".")[2][:1].isupper() or name.startswith(_MAKERS)


def unary(symbol: str, operand: Constant) -> Values:
    """The value of ``symbol operand``."""
    try:
        if symbol == "not":
            return one(Constant(not operand.value))
        if symbol == "-":
            return one(Constant(-operand.value))  # type: ignore[operator]
        if symbol == "+":
            return one(Constant(+operand.value))  # type: ignore[operator]
    except Exception:  # not the linter's concern
        return ANYTHING
    return ANYTHING
