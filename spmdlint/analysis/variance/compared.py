"""What a comparison distinguishes: one process from the others, a group of processes, or a value from no value."""

from __future__ import annotations

from spmdlint.analysis.evaluation.values import Frame, Site, constant
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.program import summary as s

# Comparisons of a process index that hold for a range or a list of processes, such as those that share a mesh.
_GROUPS = frozenset(("<", "<=", ">", ">=", "in", "not in"))
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def of_comparison(
    content: Origins, presence: Origins, frame: Frame, number: int, operation: s.Compare
) -> Reason | None:
    """Why the result of a comparison differs between processes."""
    function = content.ev.function(frame)
    empty = [n for n in operation.operands if is_empty(function.operations[n])]
    if empty:
        # Whether there is a value is a separate question from which value it is.
        return presence.any_of(frame, (n for n in operation.operands if n not in empty))
    found = content.any_of(frame, operation.operands)
    if found is not None and found.kind == "hash" and operation.operators[0] in ("in", "not in"):
        return None  # whether an object was seen before is the same everywhere, whatever its id
    if found is None or found.kind != "identity" or not any(o in _GROUPS for o in operation.operators):
        return found
    if _is_among_texts(function, operation):
        return found
    if operation.operators[0] not in ("in", "not in") and _asks_for_first(content, frame, operation):
        return found
    return Reason(Site(frame.ref, number), "it separates a group of processes from the others", "group", found)


def _is_among_texts(function: s.Function, operation: s.Compare) -> bool:
    """Whether a comparison asks for one of several texts, which are no processes."""
    listed = function.operations[operation.operands[-1]]
    texts = [function.operations[n] for n in listed.elements] if isinstance(listed, s.Display) else []
    return bool(texts) and all(isinstance(each, s.Const) and isinstance(each.value, str) for each in texts)


def _asks_for_first(content: Origins, frame: Frame, operation: s.Compare) -> bool:
    """Whether a comparison separates the first process from the others: ``> 0``, ``< 1`` and the like."""
    left, right = (constant(content.ev.value(frame, number)) for number in operation.operands[:2])
    bound, operator = (right, operation.operators[0]) if left is None else (left, _TURNED[operation.operators[0]])
    limit = {">": 0, "<=": 0, ">=": 1, "<": 1}[operator]
    return len(operation.operators) == 1 and bound is not None and bound.value == limit


def is_empty(operation: s.Operation) -> bool:
    """Whether an operation is a literal None or empty string."""
    return isinstance(operation, s.Const) and (operation.value is None or operation.value == "")
