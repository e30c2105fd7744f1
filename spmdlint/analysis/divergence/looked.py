"""Files that a loop looks for in every iteration, to stop when one appears: each process sees it when it looks.

The processes make the same parallel calls until one of them sees the file, and nothing makes all of them see it between
the same two calls, whatever the file system.
"""

from __future__ import annotations

from spmdlint.analysis.callgraph.effects import Effects
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import External, Frame
from spmdlint.analysis.variance.origins import Reason
from spmdlint.program import summary as s
from spmdlint.program.operands import operands

_LOOKING = frozenset(("exists", "isfile", "is_file", "isdir", "is_dir", "Exists"))
_DEPTH = 8


def looked_for_again(evaluator: Evaluator, effects: Effects, frame: Frame, branch: int, reason: Reason) -> int | None:
    """The call by which a branch in a loop with parallel calls looks for one file, the same in every iteration."""
    function = frame.code.function
    # The condition of a loop is evaluated in every iteration, and is no part of the loop's body.
    loops = evaluator.flow(frame.ref).loops
    around = [body | {header} for header, body in loops.items() if branch in body or branch == header]
    if not around or not _looks(evaluator, reason):
        return None
    body = min(around, key=len)
    first = next((step.site.number for step in reason.chain() if step.site.ref == frame.ref), None)
    if first is None or function.block_of[first] not in body or not isinstance(frame.code.operations[first], s.Call):
        return None  # it was tested once, before the loop
    calls = effects.of_blocks(frame, sorted(body & evaluator.live_blocks(frame)))
    lasting = any(call.strength == "strong" or call.carried for call in calls)
    return first if lasting and _is_steady(evaluator, frame, first, body, _DEPTH) else None


def _looks(evaluator: Evaluator, reason: Reason) -> bool:
    """Whether the source tests if a file exists, not what is in a folder or in the file."""
    source = reason.source.site
    where = evaluator.free_frame(source.ref)
    call = where.code.operations[source.number]
    if not isinstance(call, s.Call):
        return False
    method = where.code.operations[call.function]
    callees = evaluator.value(where, call.function)
    names = {callee.name.rpartition(".")[2] for callee in callees if isinstance(callee, External)}
    names |= {method.name} if isinstance(method, s.Attribute) else set()
    return not names.isdisjoint(_LOOKING)


def _is_steady(evaluator: Evaluator, frame: Frame, number: int, body: frozenset[int], depth: int) -> bool:
    """Whether a value is computed from nothing that an iteration of the loop changes."""
    operation = frame.code.operations[number]
    if depth == 0 or isinstance(operation, (s.Next, s.Item)):
        return False
    if isinstance(operation, s.Load):
        if not frame.code.function.binds(operation.name):
            return True
        stores = evaluator.reaching(frame, number, operation.name)
        inside = [store for store in stores if frame.code.function.block_of[store] in body]
        return all(_is_steady(evaluator, frame, store, body, depth - 1) for store in inside)
    parts = operands(operation)
    if isinstance(operation, s.Call):
        parts = (operation.function, *(argument.value for argument in operation.arguments))
    return all(_is_steady(evaluator, frame, part, body, depth - 1) for part in parts)
