"""What makes it harmless that a condition differs: it holds everywhere, or the processes make the same calls after all.

A name or a time is never empty or zero. In a loop, followers wait for the message of a leader and leave when it says
so: neither repeats the other's code. A function makes calls when it is first asked, and keeps the result: after that,
no arm makes them. The additional objects of some processes make no parallel calls. What some make in ``__enter__``, the
others make in ``__exit__``: such conditions are also judged in the functions that call both (call strings of length
two: Sharir and Pnueli, 1981).
"""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.callgraph.effects import MAX_CALLS, Effects, ParallelCall, same_calls
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import (
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    Site,
    Value,
    Values,
    certain,
)
from spmdlint.analysis.variance.agreed import parts
from spmdlint.analysis.variance.conditions import Conditions, Key, is_about_process
from spmdlint.analysis.variance.origins import Reason
from spmdlint.knowledge.files import names
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.program.operands import inputs, operands
from spmdlint.program.summary import ENTRY, EXIT

# Functions that give a name, number or time that is never empty or zero, or that keep it so.
_ASKED = names("machine_modules")
_KEEPS = frozenset(names("told_values"))
_METHODS = frozenset("strftime isoformat timestamp total_seconds hex strip lower upper split".split())
_CUTS = ("%", "//", "&", ">>")
_DEPTH = 6
_PUTTING = frozenset(("append", "add", "insert", "appendleft"))
_CALLERS = 2
"""How many calls up the callers are asked."""


def always_true(evaluator: Evaluator, frame: Frame, test: int, asked: frozenset[int] = frozenset()) -> bool:
    """Whether a condition is a time or a name, or computed from one: it differs everywhere, but is never zero.

    ``asked`` are the operations that lead to this question: a name that a loop gives itself again says nothing.
    """
    function = evaluator.function(frame)
    operation = function.operations[test]
    if test in asked:
        return False
    asked |= {test}
    if isinstance(operation, s.Unary) and operation.operator == "not":
        return always_true(evaluator, frame, operation.operand, asked)
    if isinstance(operation, s.Load) and function.binds(operation.name):
        stores = evaluator.reaching(frame, test, operation.name)
        values = [store.value for n in stores if isinstance(store := function.operations[n], s.Store)]
        return bool(values) and all(always_true(evaluator, frame, value, asked) for value in values)
    if isinstance(operation, s.BoolOp):
        answers = [always_true(evaluator, frame, each, asked) for each in operation.operands]
        return any(answers) if operation.operator == "or" else all(answers)
    if isinstance(operation, s.Binary):
        return operation.operator not in _CUTS
    if isinstance(operation, s.Call):
        callees = evaluator.value(frame, operation.function)
        return bool(callees) and all(_is_kept(evaluator, callee) for callee in callees)
    return isinstance(operation, s.FString) or (isinstance(operation, s.Const) and bool(operation.value))


def _is_kept(evaluator: Evaluator, callee: Value) -> bool:
    if isinstance(callee, Member):
        return callee.name in _METHODS
    if isinstance(callee, External):
        owner, _, method = callee.name.rpartition(".")
        known = evaluator.knowledge.get(owner)
        if known is not None and known.attribute:
            return method in _METHODS
    return isinstance(callee, External) and (callee.name.startswith(_ASKED) or callee.name in _KEEPS)


def one_follows(
    ev: Evaluator, effects: Effects, frame: Frame, one: Sequence[ParallelCall], other: Sequence[ParallelCall]
) -> bool:
    """Whether one of two arms follows the other: it waits in a loop for a call that the other arm makes as well."""
    return any(
        _is_word(ev, effects, frame, call) and any(call.matches(answer) for answer in theirs)
        for ours, theirs in ((one, other), (other, one))
        for call in ours
    )


def _is_word(ev: Evaluator, effects: Effects, frame: Frame, call: ParallelCall) -> bool:
    """Whether a call makes processes agree, and its result decides whether a loop around it goes on or ends.

    The loop may be in the arm, or in any function on the way to the call.
    """
    made = call.path[-1]
    inside = ev.free_frame(made.ref) if made.ref != frame.ref else frame
    operation = inside.code.operations[made.number]
    if not isinstance(operation, s.Call) or not effects.agrees(inside, operation):
        return False
    return any(
        _decides_a_loop(ev, frame if site.ref == frame.ref else ev.free_frame(site.ref), site.number)
        for site in call.path
    )


def _decides_a_loop(ev: Evaluator, frame: Frame, number: int) -> bool:
    """Whether an operation is in a loop that ends or goes on depending on its result."""
    function, flow = frame.code.function, ev.flow(frame.ref)
    for header in flow.loops:
        body = flow.loop_body(header)
        for block in body if function.block_of[number] in body else ():
            test = function.blocks[block].test
            if test is not None and flow.leaves(block, header) and number in parts(ev, frame, test, _DEPTH):
                return True
    return False


def are_silent(effects: Effects, frame: Frame, element: int, reason: Reason, calls: Sequence[ParallelCall]) -> bool:
    """Whether the objects that only some processes have make none of the calls that a loop makes through them.

    ``element``: the element of the loop.
    """
    added = _added(effects, reason)
    if not added or not all(isinstance(value, Instance) for value in added):
        return False
    code = frame.code
    for number in sorted({call.path[0].number for call in calls}):
        operation = code.operations[number]
        if not isinstance(operation, s.Call):
            return False
        called = code.operations[operation.function]
        owner, name = operation.function, "__call__"
        if isinstance(called, s.Attribute):
            owner, name = called.base, called.name
        if code.root_of(owner) != element:
            return False
        for value in added:
            bound = certain(effects.ev.objects.attribute(value, name)) if isinstance(value, Instance) else None
            if not isinstance(bound, FunctionValue) or any(effects.of_callee(frame, number, operation, bound)):
                return False
    return True


def _added(effects: Effects, reason: Reason) -> Values:
    """The values that only some processes put into the collection of a reason: all that a branch puts there."""
    for step in reason.chain():
        where = effects.ev.free_frame(step.site.ref)
        first = _put(where, step.site.number)
        if first is None:
            continue
        block_of = where.code.function.block_of
        made = {block_of[store] for store in where.code.function.stores.get(first[0], ())}
        filling = where.code.filling.get(first[0], ())
        puts = (_put(where, n) for n in filling if n == step.site.number or block_of[n] not in made)
        given = [value for put in puts if put is not None for value in put[1]]
        return frozenset().union(*(effects.ev.value(where, value) for value in given))
    return frozenset()


def _put(where: Frame, number: int) -> tuple[str, tuple[int, ...]] | None:
    """The name of the collection that an operation puts something into, and the values that it puts."""
    operations = where.code.operations
    put = operations[number]
    if isinstance(put, s.Binary) and put.inplace:  # `name += [...]`
        base, added = operations[put.left], operations[put.right]
        values = added.elements if isinstance(added, s.Display) and not added.starred else ()
    elif isinstance(put, s.Call):
        method = operations[put.function]
        if not isinstance(method, s.Attribute) or method.name not in _PUTTING or not put.arguments:
            return None
        base, values = operations[method.base], (put.arguments[-1].value,)
    else:
        return None
    return (base.name, values) if isinstance(base, s.Load) and values else None


def not_made_before(
    ev: Evaluator, effects: Effects, frame: Frame, block: int, calls: tuple[ParallelCall, ...]
) -> tuple[ParallelCall, ...]:
    """The calls in an arm of the branch of a block, without those that all processes have made by then, once."""
    kept = {call for call in calls if any(_keeps_its_result(ev, site) for site in call.path[1:])}
    if not kept:
        return calls
    before = sorted({*ev.flow(frame.ref).dominators_of(block), block})
    made = {call.path[-1] for call in effects.of_blocks(frame, before)}
    return tuple(call for call in calls if call not in kept or call.path[-1] not in made)


def _keeps_its_result(ev: Evaluator, site: Site) -> bool:
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


class Balanced:
    """Asks the callers of a function. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach, effects: Effects, conditions: Conditions) -> None:
        self.ev = evaluator
        self.reach = reach
        self.effects = effects
        self.conditions = conditions

    def by_callers(self, frame: Frame, test: int) -> bool:
        """Whether in each caller of a function all processes make the same calls, whichever way a condition goes.

        It must be a condition on the process alone, which has the same answer everywhere in the program.
        """
        key = self.conditions.key(frame, test)
        return key is not None and is_about_process(key[0]) and self._in_callers(frame.ref, key[0], _CALLERS)

    def _in_callers(self, ref: FunctionRef, key: Key, depth: int) -> bool:
        edges = self.reach.callers.get(ref, ())
        callers = {edge.caller.ref for edge in edges} | self.effects.readers(ref)
        if not callers or depth == 0 or ref in callers or any(edge.target.way != "call" for edge in edges):
            return False
        return all(self._is_even(caller, key) or self._in_callers(caller, key, depth - 1) for caller in callers)

    def _is_even(self, ref: FunctionRef, key: Key) -> bool:
        """Whether a function as a whole makes the same calls on the processes where a condition holds as on others."""
        one, other = (self._calls(ref, key, answer) for answer in (True, False))
        asked = (self._is_made(call, key, answer) for answer, made in ((True, one), (False, other)) for call in made)
        return 0 < len(one) < MAX_CALLS and same_calls(one, other) and None not in asked

    def _calls(self, ref: FunctionRef, key: Key, answer: bool) -> tuple[ParallelCall, ...]:
        frame = self.ev.free_frame(ref)
        live = self.ev.live_blocks(frame)
        order = [block for block in self._order(frame, key, answer) if block in live]
        return tuple(c for c in self.effects.of_blocks(frame, order) if self._is_made(c, key, answer) is not False)

    def _is_made(self, call: ParallelCall, key: Key, answer: bool) -> bool | None:
        """Whether each function on the way to a call goes on to it; None if a different condition decides it."""
        made: bool | None = True
        for site in call.path[1:]:
            inside = self.ev.free_frame(site.ref)
            block = inside.code.function.block_of[site.number]
            if block not in self._order(inside, key, answer):
                return False
            if EXIT in self._order(inside, key, answer, until=block):
                made = None
        return made

    def _order(self, frame: Frame, key: Key, answer: bool, until: int | None = None) -> tuple[int, ...]:
        closed = self.conditions.closed(frame, {key: answer}, first=True)
        return tuple(self.ev.flow(frame.ref).order(ENTRY, until, closed, caught=True))
