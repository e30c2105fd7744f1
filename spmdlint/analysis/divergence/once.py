"""Calls that are made once: a function makes them when it is first asked, and keeps the result for later.

``if self._id is None: self._id = broadcast(...)``: where every process has asked before a branch, neither arm of the
branch makes the call any more.
"""

from __future__ import annotations

from spmdlint.analysis.callgraph.effects import Effects, ParallelCall
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs, operands

_DEPTH = 4


def not_made_before(
    ev: Evaluator, effects: Effects, frame: Frame, block: int, calls: tuple[ParallelCall, ...]
) -> tuple[ParallelCall, ...]:
    """The calls in an arm of the branch of a block, without those that all processes have made by then, once."""
    kept = {call for call in calls if any(_is_kept(ev, site) for site in call.path[1:])}
    if not kept:
        return calls
    before = sorted({*ev.flow(frame.ref).dominators_of(block), block})
    made = {call.path[-1] for call in effects.of_blocks(frame, before)}
    return tuple(call for call in calls if call not in kept or call.path[-1] not in made)


def _is_kept(ev: Evaluator, site: Site) -> bool:
    """Whether an operation runs only where its function has nothing kept yet, and then something is kept."""
    code = ev.code(site.ref)
    function, flow = code.function, code.flow
    block = function.block_of[site.number]
    for number in flow.dominators_of(block):
        test = function.blocks[number].test
        asked = _names(function, test, _DEPTH) if test is not None else set()
        for edge in function.blocks[number].edges if asked else ():
            region = flow.guarded(number, edge.target)
            if block in region and any(function.block_of[n] in region for n in _stores(function, asked)):
                return True
    return False


def _names(function: s.Function, number: int, depth: int) -> set[str]:
    """The fields, and the names from outside of the function, that a condition asks for."""
    operation = function.operations[number]
    if isinstance(operation, s.Attribute):
        return {operation.name}
    if isinstance(operation, s.Load):
        return {operation.name} if operation.name in function.globals else set()
    if depth == 0:
        return set()
    inner = inputs(operation) if isinstance(operation, s.Call) else operands(operation)
    return {name for each in inner for name in _names(function, each, depth - 1)}


def _stores(function: s.Function, names: set[str]) -> list[int]:
    """The operations that store to one of these fields or names."""
    found = [n for name in names & set(function.globals) for n in function.stores.get(name, ())]
    for number, operation in enumerate(function.operations):
        if isinstance(operation, s.StoreAttribute) and operation.name in names:
            found.append(number)
    return found
