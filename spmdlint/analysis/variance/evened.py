"""Data that is resized on purpose before it is shared out, and so may well divide by the number of processes."""

from __future__ import annotations

from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame
from spmdlint.analysis.variance.arguments import argument_for
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

SHARDERS = frozenset(("shard",))
_LISTS = frozenset(names("list_makers"))
ARRANGING = frozenset("reshape ravel flatten tolist astype copy".split())
"""Methods of arrays that keep the order of the elements."""
_PARTS = ("data", "ragged", "named")
_EXAMPLES = frozenset("examples samples records rows images sequences documents".split())
_CALLERS = 2  # levels of callers that may pass a list on before it is shared out
_RESIZERS = frozenset(("concatenate", "take", "repeat", "skip"))


def called_on_what_divides(origins: Origins, frame: Frame) -> bool:
    """Whether this is a data set's own ``shard``, which is only called where the remainder was dealt with."""
    if frame.code.function.name not in SHARDERS:
        return False
    edges = origins.reach.callers.get(frame.ref, ())
    calls = [(e.caller, origins.ev.function(e.caller).operations[e.site.number]) for e in edges]
    return bool(calls) and all(isinstance(c, s.Call) and shares_what_divides(origins, f, c) for f, c in calls)


def shares_what_divides(origins: Origins, frame: Frame, operation: s.Call) -> bool:
    """Whether a call is a data set's own method that shares out what was made longer or shorter on purpose before."""
    method = origins.ev.function(frame).operations[operation.function]
    shards = isinstance(method, s.Attribute) and method.name in SHARDERS
    return shards and isinstance(method, s.Attribute) and extended(origins, frame, method.base)


def extended(origins: Origins, frame: Frame, base: int) -> bool:
    """Whether a data set is made longer or shorter on purpose before it is shared out, so that it may well divide."""
    if refuses_a_remainder(frame):
        return True
    function = origins.ev.function(frame)
    pending, seen = [base], {base}
    while pending:
        number = pending.pop()
        operation = function.operations[number]
        found: list[int] = []
        if isinstance(operation, s.Load) and function.binds(operation.name):
            found = sorted(origins.ev.reaching(frame, number, operation.name))
        elif isinstance(operation, s.Store):
            found = [operation.value]
        elif isinstance(operation, s.Call):
            method = function.operations[operation.function]
            if isinstance(method, s.Attribute):
                if method.name in _RESIZERS or ("pad" in method.name and "batch" not in method.name):
                    return True
                found = [method.base]
        pending += [n for n in found if n not in seen]
        seen.update(found)
    return False


def refuses_a_remainder(frame: Frame) -> bool:
    """Whether a function raises unless the examples divide evenly: ``if num_examples % device_count(): raise``."""
    function, operations = frame.code.function, frame.code.operations
    raising = {function.block_of[number] for number, _ in frame.code.of_kind(s.Raise)}
    for block in function.blocks if raising else ():
        if block.test is not None and any(edge.kind == "true" and edge.target in raising for edge in block.edges):
            for each in (block.test, *operands(operations[block.test])):
                divided = operations[frame.code.root_of(each)]
                if isinstance(divided, s.Binary) and divided.operator == "%" and _counts_examples(frame, divided.left):
                    return True
    return False


def _counts_examples(frame: Frame, number: int) -> bool:
    """Whether a number is that of all examples, by its name."""
    operation = frame.code.operations[number]
    words = operation.name.lower().split("_") if isinstance(operation, (s.Load, s.Attribute)) else []
    return bool(words) and words[-1] in _EXAMPLES


def divided(origins: Origins, split: Applied) -> bool:
    """Whether the data is made longer or shorter just before it is split."""
    frame = origins.ev.free_frame(split.site.ref)
    call = frame.code.operations[split.site.number]
    given = call.arguments[0].value if isinstance(call, s.Call) and call.arguments else None
    return given is not None and padded(origins, frame, given)


def padded(origins: Origins, frame: Frame, base: int) -> bool:
    """Whether something is added to a list, or cut off it, just before it is shared out, so that it may well divide.

    A branch that does so tests whether the list divides; if every caller does so, the function gets a list that
    divides.
    """
    return _padded(origins, frame, base, _CALLERS)


def _padded(origins: Origins, frame: Frame, base: int, depth: int) -> bool:
    function = origins.ev.function(frame)
    operation = function.operations[base]
    made = [operation]
    if isinstance(operation, s.Load) and function.binds(operation.name):
        stores = [function.operations[n] for n in origins.ev.reaching(frame, base, operation.name)]
        made = [function.operations[store.value] for store in stores if isinstance(store, s.Store)]
    if any(_changes_size(origins.ev, frame, each) for each in made):
        return True
    given = next((each.name for each in made if isinstance(each, s.Parameter)), None)
    return given is not None and depth > 0 and _passed_padded(origins, frame, given, depth - 1)


def _passed_padded(origins: Origins, frame: Frame, name: str, depth: int) -> bool:
    """Whether every call that enters a function in this frame passes such a list for a parameter."""
    edges = [edge for edge in origins.reach.callers.get(frame.ref, ()) if edge.target.frame is frame]
    for edge in edges:
        call = edge.caller.code.operations[edge.number]
        given = argument_for(origins.ev, frame, name, call, edge.caller) if isinstance(call, s.Call) else None
        if given is None or not _padded(origins, *given, depth):
            return False
    return bool(edges)


def _changes_size(ev: Evaluator, frame: Frame, operation: s.Operation) -> bool:
    """Whether an operation is a slice, a sum of lists, or an endless iterator, rearranged in any way."""
    operations = frame.code.operations
    for _ in LINKS:
        if not isinstance(operation, s.Call):
            break
        if ev.may_call(frame, operation, "itertools.cycle"):
            return True
        method = operations[operation.function]
        if not isinstance(method, s.Attribute) or method.name not in ARRANGING:
            return False
        operation = operations[frame.code.root_of(method.base)]
    if isinstance(operation, s.Subscript):
        index = operations[operation.index]
        return isinstance(index, s.Slice) and index.upper is not None  # what is left of a list is of any size
    return isinstance(operation, s.Binary) and operation.operator == "+"


def size_reached(ev: Evaluator, frame: Frame, joined: s.Binary) -> int | None:
    """The size of two lists together, where one pads the other up to that size, on either side."""
    sides = (joined.left, joined.right)
    sizes = (_topped_up(ev, frame, one, other) for one, other in (sides, reversed(sides)))
    return next((size for size in sizes if size is not None), None) if joined.operator == "+" else None


def _topped_up(ev: Evaluator, frame: Frame, rows: int, padding: int) -> int | None:
    """The size up to which a list is filled by padding before or after it."""
    operations, size = ev.function(frame).operations, _counted(ev, frame, rows)
    repeated = operations[resolved(ev, frame, padding)]
    if not isinstance(repeated, s.Binary) or repeated.operator != "*":
        return None
    for one, count in ((repeated.left, repeated.right), (repeated.right, repeated.left)):
        missing = operations[resolved(ev, frame, count)]
        if not isinstance(operations[one], s.Display) or not isinstance(missing, s.Binary):
            continue
        taken = operations[resolved(ev, frame, missing.right)]
        counts = isinstance(taken, s.Call) and len(taken.arguments) == 1 and missing.operator == "-"
        if counts and isinstance(taken, s.Call) and _counted(ev, frame, taken.arguments[0].value) == size:
            return missing.left
    return None


def _counted(ev: Evaluator, frame: Frame, number: int) -> int:
    """The value whose elements are counted, or listed."""
    number = resolved(ev, frame, number)
    call = frame.code.operations[number]
    if isinstance(call, s.Call) and len(call.arguments) == 1 and ev.may_call(frame, call, *_LISTS):
        return resolved(ev, frame, call.arguments[0].value)
    return number


def capped(origins: Origins, frame: Frame, arguments: list[int]) -> bool:
    """Whether these are a property of the machine and a number that caps it: ``min(os.cpu_count(), shards)``.

    Hosts of one job have much the same processors, and the cap is meant to be what decides.
    """
    found = [origins.why(frame, argument) for argument in arguments]
    varying = [reason.source for reason in found if reason is not None]
    return 0 < len(varying) < len(found) and all(_is_cappable(origins.ev, source) for source in varying)


def _is_cappable(ev: Evaluator, source: Reason) -> bool:
    call = ev.project.function(source.site.ref).operations[source.site.number]
    callees = ev.value(ev.free_frame(source.site.ref), call.function) if isinstance(call, s.Call) else ()
    known = [ev.knowledge.get(callee.name) for callee in callees if isinstance(callee, External)]
    return bool(known) and all(each is not None and each.cappable for each in known)


def raised_to_what_is_alike(origins: Origins, frame: Frame, arguments: list[int]) -> bool:
    """Whether this is ``max(len(mine), longest)``, which is ``longest`` on all, unless that is a mere literal."""
    found = [origins.why(frame, argument) for argument in arguments]
    parts = [reason for reason in found if reason is not None]
    if not parts or len(parts) == len(found) or any(reason.kind not in _PARTS for reason in parts):
        return False
    operations = frame.code.operations
    alike = [operations[frame.code.root_of(a)] for a, reason in zip(arguments, found, strict=True) if reason is None]
    return not any(isinstance(operation, s.Const) for operation in alike)
