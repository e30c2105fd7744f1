"""Evaluates comparisons of constants, of members of one enum, and of library objects with None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spmdlint.analysis.evaluation import folding
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    Collection,
    Constant,
    External,
    Instance,
    Values,
    certain,
    constant,
    one,
)
from spmdlint.knowledge.units import units

if TYPE_CHECKING:
    from spmdlint.analysis.evaluation.evaluate import Evaluator
    from spmdlint.analysis.evaluation.values import Frame
    from spmdlint.program import summary as s

_ORDERS = {">": True, ">=": True, "<": False, "<=": False}
MIRRORED = {"is": "is", "is not": "is not", "==": "==", "!=": "!=", ">": "<", "<": ">", "<=": ">=", ">=": "<="}
"""The operator that asks the same with the sides swapped."""
ON_SEVERAL = {
    ("==", 1): False, ("!=", 1): True, (">", 1): True, ("<=", 1): False, ("<", 2): False, (">=", 2): True,
}  # fmt: skip
"""What comparing a number of processes or devices above one with a number gives."""
_OLDEST, _NEXT = (3, 10), (4,)
"""The oldest Python that the oldest supported JAX runs on, and the first that none does."""
_SAME = {"is": True, "==": True, "is not": False, "!=": False}


def compared(ev: Evaluator, frame: Frame, operation: s.Compare) -> Values:
    """The result of a comparison, or anything if it is not known."""
    if len(operation.operators) != 1:
        return ANYTHING
    left, right = (ev.value(frame, operand) for operand in operation.operands)
    operator = operation.operators[0]
    if operator in ("is", "is not") and _is_made(ev, left) and constant(right) == Constant(None):
        return one(Constant(operator == "is not"))
    newer = _newer_python(left, right) if operator in _ORDERS else None
    if newer is not None:
        return one(Constant(newer is _ORDERS[operator]))
    several = _several_processes(operator, left, right)
    if several is not None:
        return one(Constant(several))
    same = _same_member(ev, left, right) if operator in _SAME else None
    if same is not None:
        return one(Constant(same is _SAME[operator]))
    return folding.binary(operator, left, right)


def _newer_python(left: Values, right: Values) -> bool | None:
    """Whether every Python that JAX runs on is newer than a version that is written out, or none is."""
    running, written = certain(left), certain(right)
    if running != External("sys.version_info") or not isinstance(written, Collection) or written.open:
        return None
    numbers = [constant(each) for each in written.elements]
    version = tuple(number.value for number in numbers if number is not None and isinstance(number.value, int))
    if not version or len(version) < len(numbers):
        return None
    return True if version <= _OLDEST else False if version >= _NEXT else None


def _several_processes(operator: str, left: Values, right: Values) -> bool | None:
    """The answer to a question for a job of one process: the linter judges jobs of several."""
    for count, number, asked in ((left, right, operator), (right, left, MIRRORED.get(operator, ""))):
        counted, than = certain(count), constant(number)
        counts = isinstance(counted, Applied) and units().counts.get(counted.name) == "process"
        if counts and than is not None:
            return ON_SEVERAL.get((asked, than.value)) if type(than.value) is int else None
    return None


def _is_made(ev: Evaluator, values: Values) -> bool:
    """Whether the value is certainly an object that a library made, and not None: a map, a mesh, a sharding."""
    value = certain(values)
    known = ev.knowledge.get(value.name) if isinstance(value, Applied) else None
    return known is not None and known.kind not in (None, "apply", "forward")


def _same_member(ev: Evaluator, left: Values, right: Values) -> bool | None:
    """Whether two members of one enum, with values written in the source, are the same; None if not known."""
    one_member, other = certain(left), certain(right)
    if not isinstance(one_member, Instance) or not isinstance(other, Instance) or one_member.cls != other.cls:
        return None
    if not ev.objects.is_enum(other.cls) or one_member.arguments is None or other.arguments is None:
        return None
    values = [constant(given) for given in (*one_member.arguments.positional, *other.arguments.positional)]
    return values[0] == values[1] if len(values) == 2 and None not in values else None
