"""Arrays of elements selected by content: as many rows as there are distinct ones, or as meet a condition.

Each process selects from its own data, so if the array is used as one process's part, the parts differ in size.
"""

from __future__ import annotations

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.fillings import fillings
from spmdlint.analysis.evaluation.values import External, Frame, Site
from spmdlint.analysis.variance.counted import size_asked_for
from spmdlint.analysis.variance.reason import Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

SELECTED = "selected"
"""The kind of such a reason: it counts only if the array is used as a process's part."""
SELECTORS = frozenset(
    "unique nonzero flatnonzero argwhere extract compress setdiff1d intersect1d union1d unique_values".split()
)
_MASKS = frozenset(("isin", "isfinite", "isnan")) | SELECTORS
_BOOLEANS = frozenset(f"{library}.{name}" for library in ("numpy", "jax.numpy") for name in ("bool", "bool_")) | {
    "builtins.bool"
}
_COMPARED = frozenset(("==", "!=", "<", "<=", ">", ">="))
_DEPTH = 6


def by_function(frame: Frame, number: int, name: str) -> Reason | None:
    """Why ``unique(ids)``, ``nonzero(mask)``, ``where(mask)`` differ in length; with a ``size`` they do not."""
    operation = frame.code.operations[number]
    if not isinstance(operation, s.Call):
        return None
    selects = name in SELECTORS or (name == "where" and len(operation.arguments) == 1)
    if not selects or any(argument.keyword == "size" for argument in operation.arguments):
        return None
    return Reason(Site(frame.ref, number), f"{name}() returns as many elements as it finds in the data", SELECTED)


def by_index(ev: Evaluator, frame: Frame, number: int, index: int) -> Reason | None:
    """Why ``rows[mask]``, where the mask compares arrays, or ``rows[flatnonzero(mask)]`` differs in length."""
    if _is_mask(ev, frame, index, _DEPTH):
        return Reason(Site(frame.ref, number), "a mask selects as many rows as match it", SELECTED)
    return None


def _is_mask(ev: Evaluator, frame: Frame, number: int, depth: int) -> bool:
    operation = ev.function(frame).operations[resolved(ev, frame, number)]
    if depth == 0:
        return False
    if isinstance(operation, s.Compare):
        return len(operation.operators) == 1 and operation.operators[0] in _COMPARED
    if not isinstance(operation, s.Call) or not operation.arguments:
        return False
    if _to_booleans(ev, frame, operation):
        return True
    names = [v.name for v in ev.value(frame, operation.function) if isinstance(v, External)]
    return any(name.startswith(("numpy.", "jax.numpy.")) and name.rpartition(".")[2] in _MASKS for name in names)


def _to_booleans(ev: Evaluator, frame: Frame, call: s.Call) -> bool:
    """Whether a call is ``mask.astype(bool)``, ``asarray(mask, dtype=bool)`` or the like."""
    method = frame.code.operations[call.function]
    types = [argument.value for argument in call.arguments if argument.keyword == "dtype"]
    if isinstance(method, s.Attribute) and method.name == "astype":
        types += [argument.value for argument in call.arguments[:1]]
    named = {v.name for each in types for v in ev.value(frame, each) if isinstance(v, External)}
    return not named.isdisjoint(_BOOLEANS)


def by_filling(ev: Evaluator, frame: Frame, number: int) -> Reason | None:
    """Why a list of elements that meet a condition differs in length: a comprehension, or `append` under an `if`."""
    operation = ev.function(frame).operations[number]
    if isinstance(operation, s.Load):
        if size_asked_for(ev, frame, number, operation) is not None:
            return None
        found = _appended(ev, frame, number, operation.name) if frame.code.function.binds(operation.name) else None
        if found is not None:
            return found
    place = resolved(ev, frame, number)
    made = ev.function(frame).operations[place]
    if isinstance(made, s.Collected) and made.kind in ("list", "generator"):
        wanted = frame.code.function.block_of[made.element]
        if _left_out(ev, frame, made.loops[-1], wanted):
            return Reason(Site(frame.ref, place), "it takes as many elements as meet the condition", SELECTED)
    return None


def _appended(ev: Evaluator, frame: Frame, load: int, name: str) -> Reason | None:
    function = frame.code.function
    for number, _ in fillings(ev, frame, load):
        for loop, operation in enumerate(function.operations):
            if isinstance(operation, s.Next) and _left_out(ev, frame, loop, function.block_of[number]):
                text = f"{name!r} takes as many elements as meet the condition"
                return Reason(Site(frame.ref, number), text, SELECTED)
    return None


def _left_out(ev: Evaluator, frame: Frame, loop: int, wanted: int) -> bool:
    """Whether a condition on the element of a loop decides if an iteration reaches a block of the loop's body."""
    function, flow = frame.code.function, ev.flow(frame.ref)
    header = function.block_of[loop]
    body = flow.loop_body(header)
    if wanted not in body:
        return False
    for block in body - {header}:
        test = function.blocks[block].test
        kinds = {edge.kind for edge in function.blocks[block].edges}
        if test is None or not {"true", "false"} <= kinds or not _compares_element(ev, frame, loop, test, _DEPTH):
            continue
        arms = [edge.target for edge in function.blocks[block].edges if edge.kind in ("true", "false")]
        if sum(wanted in flow.reachable(arm, without=header) for arm in arms) == 1:
            return True
    return False


def _compares_element(ev: Evaluator, frame: Frame, loop: int, number: int, depth: int) -> bool:
    """Whether a condition compares a part of a loop's element with something; an iteration's number does not count."""
    operations = frame.code.operations
    operation = operations[number]
    if depth == 0:
        return False
    if isinstance(operation, s.Compare) and operation.operators[0] in ("<", "<=", ">", ">="):
        return any(_of_element(ev, frame, loop, each, depth - 1) for each in operation.operands)
    return False


def _of_element(ev: Evaluator, frame: Frame, loop: int, number: int, depth: int) -> bool:
    """Whether a value is the element of a loop, or is taken from it."""
    operations = frame.code.operations
    operation = operations[number]
    if depth == 0:
        return False
    if isinstance(operation, s.Load):
        stores = ev.reaching(frame, number, operation.name)
        return any(_of_element(ev, frame, loop, store, depth - 1) for store in stores)
    if isinstance(operation, s.Store):
        return _of_element(ev, frame, loop, operation.value, depth - 1)
    if isinstance(operation, s.Next):
        return number == loop and not _counts(ev, frame, operation)
    if isinstance(operation, s.Item):
        each = operations[operation.value]
        if isinstance(each, s.Next):
            return operation.value == loop and not (operation.index == 0 and _counts(ev, frame, each))
        return _of_element(ev, frame, loop, operation.value, depth - 1)
    return False


def _counts(ev: Evaluator, frame: Frame, step: s.Next) -> bool:
    """Whether a loop counts its iterations, by `range` or `enumerate`."""
    call = frame.code.operations[step.iterable]
    return ev.may_do(frame, call, "range", "enumerate")
