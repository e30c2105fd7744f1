"""Decides when two conditions are the same, and which conditions hold at a place, by comparing value numbers.

Two branches on the same condition are correlated: if ``if rank != 0: wait()`` is followed by ``if rank == 0: wait()``,
every process waits once. To see this, calls are listed under the assumption that the condition holds, and under the
assumption that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from spmdlint.analysis.evaluation.code import Code
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.folding import ARITHMETIC
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Instance, Unknown, certain, constant
from spmdlint.analysis.variance.environment import variable_read
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

Key: TypeAlias = tuple[object, ...]
Assumptions: TypeAlias = Mapping[Key, bool]
Closed: TypeAlias = frozenset[tuple[int, int]]
"""Edges that are not taken, as pairs of blocks."""

_DEPTH = 12
_ASKED = "asked"
"""The mark of a condition that is known by its place only."""
# The normal form of a comparison: its operator, whether the sides are swapped, whether it is negated.
_NORMAL = {
    "==": ("==", False, False),
    "!=": ("==", False, True),
    "is": ("is", False, False),
    "is not": ("is", False, True),
    "in": ("in", False, False),
    "not in": ("in", False, True),
    "<": ("<", False, False),
    ">": ("<", True, False),
    ">=": ("<", False, True),
    "<=": ("<", True, True),
}
_COUNT: Key = ("call", "jax.process_count")
_COUNT_NAMES = frozenset(
    "host_count n_hosts n_processes nprocs num_hosts num_processes num_procs process_count world_size".split()
)
"""Names of parameters that hold the number of processes."""
_EMPTY = "empty"
_NO_MESH: Key = (_EMPTY,)
"""The key of ``mesh.empty``: a job of several processes has one."""
_COUNTS = _COUNT_NAMES | {"device_count", _EMPTY}
_DEVICES: Key = ("call", "jax.device_count")
_OWN_DEVICES: Key = ("call", "jax.local_device_count")
_COUNTED = {key[1]: key for key in (_COUNT, _DEVICES, _OWN_DEVICES)}
_INDEX = "number of the process"
_NUMBER: Key = (_INDEX,)
_ZERO: Key = ("constant", "0")
# Comparisons that test whether the process index is 0, and whether they hold if it is.
_FIRST: dict[Key, bool] = {
    ("<", _ZERO, _NUMBER): False,
    ("<", _NUMBER, ("constant", "1")): True,
    ("==", _ZERO, _NUMBER): True,
}
IS_FIRST: Key = ("==", _NUMBER, _ZERO)


class Conditions:
    """Compares conditions. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._for_one: dict[tuple[Code, int], bool] = {}

    def key(self, frame: Frame, test: int) -> tuple[Key, bool] | None:
        """A condition in normal form, and whether it holds when the normal form does; None for a join of several.

        What cannot be compared with another condition is the same as itself.
        """
        operation = self.ev.function(frame).operations[test]
        if isinstance(operation, s.Unary) and operation.operator == "not":
            inner = self.key(frame, operation.operand)
            return (inner[0], not inner[1]) if inner is not None else None
        if isinstance(operation, s.BoolOp):
            return None
        found = self._value(frame, test, _DEPTH) or (_ASKED, frame.ref, test)
        if found[0] == "not":
            return found[1], False  # type: ignore[return-value]
        if found == _NUMBER:
            return IS_FIRST, False
        return found, True

    def same(self, frame: Frame, one: int, other: int) -> bool:
        """Whether two values of one function are certainly equal."""
        key = self._value(frame, one, _DEPTH)
        return one == other or (key is not None and key == self._value(frame, other, _DEPTH))

    def is_index(self, frame: Frame, number: int) -> bool:
        """Whether a value is certainly the process index, from JAX or from a launcher, by any name."""
        return self._value(frame, number, _DEPTH) == _NUMBER

    def _value(self, frame: Frame, number: int, depth: int) -> Key | None:
        """The value number of an operation, as in value numbering: equal keys mean equal values."""
        operation = self.ev.function(frame).operations[number]
        if depth == 0:
            return None
        if isinstance(operation, s.Const):
            return ("constant", repr(operation.value))
        if isinstance(operation, s.Compare):
            return self._comparison(frame, operation, depth)
        if isinstance(operation, s.Binary):
            sides = [self._value(frame, side, depth - 1) for side in (operation.left, operation.right)]
            if operation.operator == "//" and sides == [_DEVICES, _OWN_DEVICES]:
                return _COUNT
            return None if None in sides else ("binary", operation.operator, *sides)
        if isinstance(operation, s.Load):
            return self._name(frame, number, operation, depth)
        if isinstance(operation, s.Store):
            return self._value(frame, operation.value, depth - 1)
        if isinstance(operation, s.Parameter):
            return _COUNT if operation.name in _COUNT_NAMES else ("parameter", frame.ref, operation.name)
        if isinstance(operation, s.Subscript):
            return _NUMBER if self._reads_rank(frame, operation) else None
        if isinstance(operation, s.Attribute):
            owner = self.ev.function(frame).operations[operation.base]
            if operation.name == _EMPTY and "mesh" in getattr(owner, "name", ""):
                return _NO_MESH
            kept = self._field(frame, operation, depth)
            if kept is not None:
                return kept
            base = self._value(frame, operation.base, depth - 1)
            return ("attribute", base, operation.name) if base is not None else None
        if isinstance(operation, s.Call):
            return self._called(frame, operation, depth)
        return None

    def _comparison(self, frame: Frame, operation: s.Compare, depth: int) -> Key | None:
        if len(operation.operators) != 1 or operation.operators[0] not in _NORMAL:
            return None
        sides = [self._value(frame, operand, depth - 1) for operand in operation.operands]
        if sides[0] is None or sides[1] is None:
            return None
        operator, swapped, negated = _NORMAL[operation.operators[0]]
        key: Key = (operator, *(reversed(sides) if swapped else sides))
        if key in _FIRST:
            key, negated = IS_FIRST, negated == _FIRST[key]
        return ("not", key) if negated else key

    def _name(self, frame: Frame, number: int, operation: s.Load, depth: int) -> Key | None:
        function = self.ev.function(frame)
        scope = self.ev.project.modules[frame.ref.path].summary.scope_of(function, operation.name)
        if scope is None and frame.ref.index != 0:
            top = self.ev.free_frame(FunctionRef(frame.ref.path, 0))
            kept = self.ev.function(top).stores.get(operation.name, ())
            if len(kept) == 1:
                return self._value(top, kept[0], depth - 1) or ("outer", operation.name)
        if scope is not function:
            return ("outer", operation.name)
        stores = self.ev.reaching(frame, number, operation.name)
        if len(stores) == 1:
            (store,) = stores
            found = self._value(frame, store, depth - 1)
            return found if found is not None else ("store", frame.ref, store)
        return ("stores", frame.ref, operation.name, stores)

    def _called(self, frame: Frame, operation: s.Call, depth: int) -> Key | None:
        """The key of a call that returns the same value each time: the process index, and functions of the project."""
        callees = self.ev.value(frame, operation.function)
        if len(callees) != 1:
            return None
        (callee,) = callees
        method = frame.code.operations[operation.function]
        if isinstance(callee, Unknown) and isinstance(method, s.Attribute) and method.name == "get":
            return self._entry(frame, method, operation, depth)
        if isinstance(callee, External):
            known = self.ev.knowledge.get(callee.name)
            arguments = [argument.value for argument in operation.arguments]
            if known is not None and known.source == "identity" and not arguments:
                return _NUMBER
            if callee.name == "builtins.int" and len(arguments) == 1:
                return self._value(frame, arguments[0], depth - 1)
            if self._reads_rank(frame, operation):
                return _NUMBER
            return _COUNTED.get(callee.name) if not arguments else None
        if not isinstance(callee, FunctionValue):
            return None
        keys = [self._value(frame, argument.value, depth - 1) for argument in operation.arguments]
        return None if any(key is None for key in keys) else ("call", callee.ref, *keys)

    def _entry(self, frame: Frame, method: s.Attribute, call: s.Call, depth: int) -> Key | None:
        """The key of ``config.get("name")``, if the name is a literal."""
        asked = [frame.code.operations[argument.value] for argument in call.arguments]
        written = [each.value for each in asked if isinstance(each, s.Const)]
        if len(written) < len(asked) or not written or not isinstance(written[0], str):
            return None
        base = self._value(frame, method.base, depth - 1)
        return ("entry", base, repr(written)) if base is not None else None

    def _reads_rank(self, frame: Frame, operation: s.Operation) -> bool:
        name = variable_read(self.ev, frame, operation)
        variable = constant(self.ev.value(frame, name)) if name is not None else None
        return variable is not None and self.ev.knowledge.is_rank(variable.value)

    def _field(self, frame: Frame, operation: s.Attribute, depth: int) -> Key | None:
        """The key of a field that holds the process index, if its class stores it in only one place."""
        owner = certain(self.ev.objects.by_name.owners(frame, operation.base, operation.name))
        if not isinstance(owner, Instance):
            return None
        stored = self.ev.objects.only_stored(self.ev.objects.lineage(owner.cls), operation.name)
        found = self._value(*stored, depth - 1) if stored is not None else None
        return found if found is not None and _about_number(found) else None

    # -- what holds where

    def assumed(self, frame: Frame, block: int) -> dict[Key, bool] | None:
        """The conditions known to hold, or not, whenever control reaches a block; None if no process reaches it."""
        found: dict[Key, bool] = {}
        flow = self.ev.flow(frame.ref)
        for number in sorted(flow.dominators_of(block)):
            for answer, target in self._arms(frame, number).items():
                if flow.leads(number, target, block):
                    facts = self.facts(frame, self._test(frame, number), answer)
                    # Other conditions may have changed between the two.
                    if any(found.get(key, holds) != holds and _about_number(key) for key, holds in facts.items()):
                        return None
                    found.update(facts)
        return found

    def facts(self, frame: Frame, test: int, answer: bool) -> dict[Key, bool]:
        """What follows if a condition holds, or if it does not."""
        operation = self.ev.function(frame).operations[test]
        if isinstance(operation, s.BoolOp):
            if answer != (operation.operator == "and"):
                whole = self._joined(frame, operation)
                return {} if whole is None else {whole: answer}
            left, right = (self.facts(frame, operand, answer) for operand in operation.operands)
            return {**left, **right}
        if isinstance(operation, s.Unary) and operation.operator == "not":
            return self.facts(frame, operation.operand, not answer)
        key = self.key(frame, test)
        return {key[0]: answer == key[1]} if key is not None else {}

    def _joined(self, frame: Frame, operation: s.BoolOp) -> Key | None:
        """The key of a whole BoolOp, for answers that decide none of its operands: a false ``and``, a true ``or``."""
        keys = [self.key(frame, operand) for operand in operation.operands]
        return None if None in keys else ("joined", operation.operator, *keys)

    def heart(self, frame: Frame, test: int, varies: Callable[[int], bool]) -> tuple[int, dict[Key, bool]]:
        """The part of a condition that varies, and the answers that the other parts must have for it to decide."""
        operation = self.ev.function(frame).operations[test]
        if isinstance(operation, s.Unary) and operation.operator == "not":
            return self.heart(frame, operation.operand, varies)
        if not isinstance(operation, s.BoolOp):
            return test, {}
        varying = [operand for operand in operation.operands if varies(operand)]
        if len(varying) != 1:
            return test, {}
        found, facts = self.heart(frame, varying[0], varies)
        for operand in operation.operands:
            if operand != varying[0]:
                facts.update(self.facts(frame, operand, operation.operator == "and"))
        return found, facts

    def closed(self, frame: Frame, assumptions: Assumptions, *, first: bool = False) -> Closed:
        """The edges that are not taken if these conditions hold, or do not; ``first`` as in :meth:`holds`."""
        edges: set[tuple[int, int]] = set()
        loops = self.ev.flow(frame.ref).loops
        for number, targets in self._branches(frame):
            test = self._test(frame, number)
            if loops.get(number) and self._changes(frame, test):
                continue  # what holds in this iteration need not hold in the next
            holds = self.holds(frame, test, assumptions, first=first)
            if holds is not None and targets[True] != targets[False]:
                edges.add((number, targets[not holds]))
        return frozenset(edges)

    def _changes(self, frame: Frame, test: int) -> bool:
        """Whether a condition uses a name that is stored to in more than one place."""
        operation = self.ev.function(frame).operations[test]
        if isinstance(operation, s.BoolOp):
            return any(self._changes(frame, operand) for operand in operation.operands)
        key = self.key(frame, test)
        return key is not None and (_mentions(key[0], "stores") or _mentions(key[0], _ASKED))

    def is_steady(self, frame: Frame, test: int, loop: frozenset[int]) -> bool:
        """Whether a condition on the process index has one answer in all iterations of a loop with these blocks."""
        key = self.key(frame, test)
        return key is not None and _mentions(key[0], _INDEX) and self._is_kept(frame, key[0], loop)

    def _is_kept(self, frame: Frame, key: object, loop: frozenset[int]) -> bool:
        if not isinstance(key, tuple):
            return True
        if key[:1] in ((_ASKED,), ("stores",)):
            return False
        if key[:1] == ("store",):
            return key[1] == frame.ref and self.ev.function(frame).block_of[key[2]] not in loop
        return all(self._is_kept(frame, part, loop) for part in key)

    def holds(self, frame: Frame, test: int, assumptions: Assumptions, *, first: bool = False) -> bool | None:
        """Whether a condition holds under these assumptions; None if they do not decide it.

        ``first``: if they say that this is process 0, its index is computed with as 0.
        """
        operation = self.ev.function(frame).operations[test]
        if isinstance(operation, s.Unary) and operation.operator == "not":
            inner = self.holds(frame, operation.operand, assumptions, first=first)
            return None if inner is None else not inner
        if isinstance(operation, s.BoolOp):
            sides = [self.holds(frame, operand, assumptions, first=first) for operand in operation.operands]
            decisive = operation.operator == "or"
            if decisive in sides:
                return decisive
            if None not in sides:
                return not decisive
            whole = self._joined(frame, operation)
            return None if whole is None else assumptions.get(whole)
        key = self.key(frame, test)
        if key is None:
            return None
        known = assumptions.get(key[0])
        if known is None and first and assumptions.get(IS_FIRST):
            known = _on_first(key[0])
        return None if known is None else known == key[1]

    def alone(self, frame: Frame, block: int) -> bool:
        """Whether control reaches a block only in a single-process job, or never."""
        known = self.assumed(frame, block)
        return known is None or self.one_process(known)

    def is_for_one(self, frame: Frame, number: int) -> bool:
        """Whether an operation runs only in a single-process job: ``if jax.process_count() == 1: return x``."""
        if not frame.code.mentions(_COUNTS):
            return False  # few functions mention one, and this check is the cheapest
        key = (frame.code, frame.code.function.block_of[number])
        if key not in self._for_one:
            self._for_one[key] = self.alone(frame, key[1])
        return self._for_one[key]

    @staticmethod
    def one_process(assumptions: Assumptions) -> bool:
        """Whether these assumptions imply that the job has one process."""
        one: Key = ("constant", "1")
        same = (("==", _OWN_DEVICES, _DEVICES), ("==", _DEVICES, _OWN_DEVICES))
        if any(map(assumptions.get, same)) or assumptions.get(("<", _OWN_DEVICES, _DEVICES)) is False:
            return True  # all devices belong to this process
        if assumptions.get(_NO_MESH):
            return True
        return assumptions.get(("==", _COUNT, one)) is True or assumptions.get(("<", one, _COUNT)) is False

    def _test(self, frame: Frame, block: int) -> int:
        test = self.ev.function(frame).blocks[block].test
        assert test is not None
        return test

    def _branches(self, frame: Frame) -> Iterator[tuple[int, dict[bool, int]]]:
        for number in range(len(self.ev.function(frame).blocks)):
            arms = self._arms(frame, number)
            if arms:
                yield number, arms

    def _arms(self, frame: Frame, number: int) -> dict[bool, int]:
        """The target of each arm of a branch, by the answer of its condition; empty if the block is not a branch."""
        block = self.ev.function(frame).blocks[number]
        arms = {edge.kind == "true": edge.target for edge in block.edges if edge.kind in ("true", "false")}
        return arms if block.test is not None and len(arms) == 2 else {}


def _about_number(key: Key) -> bool:
    """Whether a value depends on the process index alone, so that it is the same each time it is computed."""
    if key[0] == "not":
        return _about_number(key[1])  # type: ignore[arg-type]
    return key == _NUMBER or (key[0] == "==" and set(key[1:]) == {_NUMBER, _ZERO})


def _on_first(key: Key) -> bool | None:
    """Whether a comparison of integers holds on process 0; None if it depends on more than the process index."""
    if len(key) != 3 or key[0] not in ("==", "<"):
        return None
    one, other = map(_number, key[1:])
    return None if one is None or other is None else one == other if key[0] == "==" else one < other


def _number(key: object) -> int | None:
    """The integer that process 0 computes for a key."""
    if key == _NUMBER:
        return 0
    if not isinstance(key, tuple) or not key:
        return None
    if key[0] == "constant":
        return int(key[1]) if key[1].isdecimal() else None
    sides = [_number(side) for side in key[2:]] if key[0] == "binary" else []
    if len(sides) != 2 or sides[0] is None or sides[1] is None or key[1] not in ARITHMETIC:
        return None
    return None if key[1] in ("%", "//") and sides[1] == 0 else ARITHMETIC[key[1]](sides[0], sides[1])


def is_about_process(key: object) -> bool:
    """Whether a condition is made of the number of the process and constants alone, so that it is one everywhere."""
    return _mentions(key, _INDEX) and _is_made_of_constants(key)


def _is_made_of_constants(key: object) -> bool:
    if not isinstance(key, tuple):
        return isinstance(key, str)
    return key in (_NUMBER, _COUNT) or key[:1] == ("constant",) or all(map(_is_made_of_constants, key))


def _mentions(key: object, word: str) -> bool:
    return isinstance(key, tuple) and (key[:1] == (word,) or any(_mentions(part, word) for part in key))
