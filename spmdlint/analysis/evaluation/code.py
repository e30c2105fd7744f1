"""What is true of one function in all its frames: computed once instead of once per frame.

A store has the value that it stores, and so has a load that only one store reaches: their *root* is the operation that
makes the value. A root is *fixed* if nothing in it depends on the frame: constants, globals, their attributes, and
results of operators on these. Calls are never fixed, because the depth to which they are followed depends on the depth
of the frame.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from spmdlint.analysis.evaluation.cfg import Flow
from spmdlint.analysis.evaluation.operations import Operations
from spmdlint.analysis.evaluation.values import Values
from spmdlint.program import summary as s
from spmdlint.program.operands import operands
from spmdlint.program.sharing import shared

LINKS = range(64)
"""The number of calls, attributes and names in one chain that are followed: a loop may make it endless."""
_MUTATORS = frozenset(
    "append extend insert add update remove discard pop clear setdefault sort reverse".split(),
)
NEVER_DECIDED = (s.Next, s.Matches)
"""A branch on one of these operations is undecided in every frame."""
NO_ROOT = -1
_NONE: frozenset[str] = frozenset()
_UNSET: Mapping[str, tuple[int, ...]] = {}
CHANGES, FIXED = 1, 2
_OTHERS: tuple[type, ...] = (s.Store, s.Load, s.Await)
"""The operations whose root may be a different operation."""
_STATES: dict[type, int] = {
    s.Call: CHANGES,
    s.MakeFunction: CHANGES,
    s.MakeClass: CHANGES,
    s.Parameter: CHANGES,
    s.Collected: CHANGES,
    s.Const: FIXED,
}
"""The kinds of operations for which it is known at once whether their value changes with the frame."""

_DEFAULTING = frozenset(("setdefault",))
_SILENT = (s.Parameter, s.Store, s.Const)
_CALL, _RETURN = (s.Call,), (s.Return,)
_ENTERING = (s.Call, s.Enter, s.Collected)
_STARTING = (s.Import, s.MakeClass, s.Call)


class Code(Operations):
    """One function, its control-flow graph, and the values that all its frames share. One per run and function."""

    __slots__ = ("_scopes", "fixed", "flow", "known", "roots", "summary")

    def __init__(self, summary: s.Summary, function: s.Function) -> None:
        super().__init__(function)
        self.summary = summary
        self.flow = Flow(function)
        self.known: dict[int, Values] = {}
        """The values of fixed roots."""
        self.roots = array("i", range(len(function.operations)))
        """The known roots, by operation; :meth:`root_of` finds the others."""
        self.fixed = bytearray(len(function.operations))
        """The state of each operation: nothing known yet, changes with the frame, or fixed."""
        self._scopes: dict[str, s.Function | None] = {}
        for kind in _OTHERS:
            for number in self.numbers_of(kind):
                self.roots[number] = NO_ROOT
        for kind, state in _STATES.items():
            for number in self.numbers_of(kind):
                self.fixed[number] = state

    def scope_of(self, name: str) -> s.Function | None:
        """The scope that binds a name that is used here; None if the name is global or built in."""
        if name not in self._scopes:
            self._scopes[name] = self.summary.scope_of(self.function, name)
        return self._scopes[name]

    @cached_property
    def own_fields(self) -> frozenset[str]:
        """The fields of its receiver that a method stores to."""
        return frozenset(store.name for _, store in self.of_kind(s.StoreAttribute)) or _NONE

    @cached_property
    def is_stub(self) -> bool:
        """Whether it is a method without a body (`...`, `pass`, a docstring): that of a subclass runs in its place."""
        outer = self.function.parent
        if outer is None or self.summary.functions[outer].kind != "class":
            return False
        return all(isinstance(each, _SILENT) or each == s.Return(None) for each in self.operations)

    # -- operations that have the value of a different operation

    def root_of(self, number: int) -> int:
        """The root of an operation: the operation that makes its value."""
        root, seen = number, {number}
        before = self._before(number)
        while before is not None:
            if before in seen:
                root = number  # a name that is only ever assigned to itself
                break
            seen.add(before)
            root = before
            before = self._before(root) if type(self.operations[root]) in _OTHERS else None
        self.roots[number] = root
        return root

    def _before(self, number: int) -> int | None:
        operation = self.operations[number]
        if isinstance(operation, (s.Store, s.Await)):
            return operation.value
        if isinstance(operation, s.Load) and self.scope_of(operation.name) is self.function:
            stores = self.flow.reaching(number, operation.name)
            named = operation.name not in self.mutated_names and operation.name not in self.set_inside
            if len(stores) == 1 and named:
                return next(iter(stores))
        return None

    # -- values that are the same in every frame

    def is_fixed(self, root: int) -> bool:
        """Whether the value of a root is the same in every frame."""
        known = self.fixed[root]
        if not known:
            self.fixed[root] = CHANGES  # a value that depends on itself, in a loop
            known = self.fixed[root] = FIXED if self._find_fixed(self.operations[root]) else CHANGES
        return known == FIXED

    def _find_fixed(self, operation: s.Operation) -> bool:
        if isinstance(operation, s.Load):
            return self.function.kind != "module" and self.scope_of(operation.name) is None
        roots, fixed = self.roots, self.fixed
        for number in operands(operation):
            root = roots[number]
            if root == NO_ROOT:
                root = self.root_of(number)
            known = fixed[root]
            if known == CHANGES or not (known or self.is_fixed(root)):
                return False
        return True

    @cached_property
    def mutated_names(self) -> frozenset[str]:
        """The names whose values the function changes in place."""
        loads = (self.operations[changed] for _, changed in self.changes)
        return frozenset(load.name for load in loads if isinstance(load, s.Load)) if self.changes else _NONE

    @cached_property
    def set_inside(self) -> Mapping[str, tuple[int, ...]]:
        """The names that nested functions set by ``nonlocal``, with the numbers of those functions."""
        return self.summary.set_inside.get(self.function.index, _UNSET)

    @cached_property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """The operations that change a collection in place, each with that collection."""
        kinds: tuple[type[s.Operation], ...] = (s.Attribute, s.Binary, s.StoreSubscript, s.Delete)
        operations = sorted((number, operation) for kind in kinds for number, operation in self.of_kind(kind))
        changed = ((number, changed_in_place(operation)) for number, operation in operations)
        return tuple((number, collection) for number, collection in changed if collection is not None)

    @cached_property
    def defaulting(self) -> dict[int, tuple[int, int]]:
        """The calls of `setdefault` with a value, each with that value, by the called operation."""
        return {
            operation.function: (number, operation.arguments[1].value)
            for number, operation in self.calls_named(_DEFAULTING).items()
            if len(operation.arguments) == 2 and not any(argument.star for argument in operation.arguments)
        }

    @cached_property
    def appending(self) -> dict[int, tuple[int, int]]:
        """The calls with one argument, such as `append`, each with that argument, by the called operation."""
        return {
            operation.function: (number, operation.arguments[0].value)
            for number, operation in self.of_kind(s.Call)
            if len(operation.arguments) == 1 and not operation.arguments[0].star
        }

    # -- control flow

    @cached_property
    def ways(self) -> tuple[tuple[int | None, tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...]:
        """By block: the operation that decides its branch, all successors, and those if it is true, or false."""
        found: list[tuple[int | None, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = []
        for block, targets in zip(self.function.blocks, self.flow.successors, strict=True):
            test = block.test
            if test is None or isinstance(self.operations[test], NEVER_DECIDED):
                found.append(shared((None, targets, targets, targets)))
                continue
            taken = "except" if isinstance(self.operations[test], s.Caught) else "true"
            yes = shared(tuple([edge.target for edge in block.edges if edge.kind != "false"]))
            no = shared(tuple([edge.target for edge in block.edges if edge.kind != taken]))
            found.append((test, targets, yes, no))
        return tuple(found)

    def only_imports(self, test: int) -> Sequence[s.Import] | None:
        """The imports of the `try` to which a handler belongs, if its body does nothing but import."""
        found: list[s.Import] = []
        for block in self.flow.predecessors[self.function.block_of[test]]:
            body = [self.operations[number] for number in self.function.blocks[block].operations]
            if not all(isinstance(operation, (s.Import, s.Store)) for operation in body):
                return None
            found += [operation for operation in body if isinstance(operation, s.Import)]
        return found

    def reaching_in(
        self, live: frozenset[int], decisions: tuple[tuple[int, bool], ...], number: int, name: str
    ) -> frozenset[int]:
        """The stores that may be the last one before a load, given the live blocks and the decided branches."""
        key = (decisions, number)
        found = self._reaching.get(key)
        if found is None:
            closed = self.closed(decisions)
            found = self.flow.reaching_by(number, name, lambda *edge: edge[0] in live and edge not in closed)
            # If the code never runs, fall back on all stores.
            found = self._reaching[key] = found or self.flow.reaching(number, name)
        return found

    def closed(self, decisions: tuple[tuple[int, bool], ...]) -> set[tuple[int, int]]:
        """The edges between blocks that the decided branches do not take."""
        closed: set[tuple[int, int]] = set()
        for block, answer in decisions:
            _, targets, yes, no = self.ways[block]
            closed.update((block, target) for target in targets if target not in (yes if answer else no))
        return closed

    @cached_property
    def _reaching(self) -> dict[tuple[tuple[tuple[int, bool], ...], int], frozenset[int]]:
        """The stores that may be the last one before a load, by the decided branches."""
        return {}

    @cached_property
    def all_blocks(self) -> frozenset[int]:
        """The numbers of all blocks."""
        return _first(len(self.function.blocks))

    # -- definitions and calls

    @cached_property
    def calls(self) -> tuple[tuple[int, ...], ...]:
        """The calls in each block, in order."""
        return self.in_blocks(_CALL)

    @cached_property
    def visited(self) -> tuple[tuple[int, ...], ...]:
        """The calls, ``with`` and comprehensions in each block, in order: the operations that may enter functions."""
        return self.in_blocks(_ENTERING)

    @cached_property
    def starting(self) -> tuple[tuple[int, ...], ...]:
        """The imports, class definitions and calls in each block, in order: the operations that may run other code."""
        return self.in_blocks(_STARTING)

    def is_written(self, number: int) -> bool:
        """Whether a value is a literal, perhaps with a sign."""
        root = self.operations[self.root_of(number)]
        return isinstance(self.operations[root.operand] if isinstance(root, s.Unary) else root, s.Const)

    def taken_by(self, call: s.Call) -> tuple[int, ...]:
        """What a call takes: its arguments, and the object whose method it calls."""
        method, given = self.operations[call.function], tuple(argument.value for argument in call.arguments)
        return (*given, method.base) if isinstance(method, s.Attribute) else given

    def calls_in(self, blocks: Iterable[int]) -> Iterator[tuple[int, s.Call]]:
        """The calls in the given blocks, in order."""
        operations = self.operations
        for block in blocks:
            for number in self.calls[block]:
                operation = operations[number]
                assert isinstance(operation, s.Call)
                yield number, operation

    def always_before(self, one: int, other: int) -> bool:
        """Whether an operation has run on every way to another one."""
        first, block = self.function.block_of[one], self.function.block_of[other]
        return one < other if first == block else self.flow.dominates(first, block)

    @cached_property
    def returns(self) -> tuple[tuple[int, s.Return], ...]:
        """The returns in the order of the blocks, each with its block."""
        return tuple((block, operation) for block, _, operation in self.each(_RETURN))

    @cached_property
    def stars(self) -> tuple[s.ImportStar, ...]:
        """The star imports."""
        return tuple(operation for _, operation in self.of_kind(s.ImportStar))

    @cached_property
    def entered(self) -> tuple[tuple[int, s.Enter], ...]:
        """The operations that enter context managers, in source order."""
        return tuple(self.of_kind(s.Enter))

    @cached_property
    def left(self) -> dict[int, int]:
        """For each context manager, the last operation that leaves its block."""
        return {leave.manager: number for number, leave in self.of_kind(s.Leave)}

    @cached_property
    def loads(self) -> dict[str, list[int]]:
        """The loads of each name."""
        found: dict[str, list[int]] = {}
        for number, load in self.of_kind(s.Load):
            found.setdefault(load.name, []).append(number)
        return found

    @cached_property
    def called(self) -> frozenset[int]:
        """The operations whose values are called."""
        return frozenset(call.function for _, call in self.of_kind(s.Call))

    @cached_property
    def passed(self) -> frozenset[int]:
        """The operations whose values are passed to calls."""
        return frozenset(argument.value for _, call in self.of_kind(s.Call) for argument in call.arguments)

    @cached_property
    def made_at(self) -> dict[int, list[int]]:
        """The operations that define functions, by the number of the function."""
        found: dict[int, list[int]] = {}
        for number, made in self.of_kind(s.MakeFunction):
            found.setdefault(made.function, []).append(number)
        return found

    @cached_property
    def made_functions(self) -> dict[int, s.MakeFunction]:
        """The first operation that defines each function, by the number of the function."""
        return {made.function: made for _, made in reversed([*self.of_kind(s.MakeFunction)])}

    @cached_property
    def made_classes(self) -> dict[int, s.MakeClass]:
        """The operations that define classes, by the number of the class body."""
        return {made.body: made for _, made in self.of_kind(s.MakeClass)}

    def table_of(self, taken: s.Operation, part: int) -> int | None:
        """The table of which a loop takes a key (0) or a value (1): ``for key, value in table.items()``."""
        item = taken if isinstance(taken, s.Item) else None
        step = self.operations[item.value] if item is not None else taken
        call = self.operations[step.iterable] if isinstance(step, s.Next) else None
        method = self.operations[call.function] if isinstance(call, s.Call) else None
        view = "items" if item is not None else "values" if part else "keys"
        taken_from = isinstance(method, s.Attribute) and method.name == view and (item is None or item.index == part)
        return method.base if isinstance(method, s.Attribute) and taken_from else None

    @cached_property
    def decorators(self) -> dict[int, tuple[s.Call, ...]]:
        """The decorators of each function and class that is defined here, innermost first, by its number."""
        found: dict[int, list[s.Call]] = {}
        decorated: dict[int, int] = {}  # for each operation, the function or class that it makes or decorates
        for number, call in self.of_kind(s.Call):
            if call.decorator and call.arguments:
                given = call.arguments[0].value
                made = self.operations[given]
                inner = made.body if isinstance(made, s.MakeClass) else decorated.get(given)
                inner = made.function if isinstance(made, s.MakeFunction) else inner
                if inner is not None:
                    decorated[number] = inner
                    found.setdefault(inner, []).append(call)
        return {inner: tuple(calls) for inner, calls in found.items()}


@lru_cache(maxsize=1024)
def _first(blocks: int) -> frozenset[int]:
    """The numbers below ``blocks``; the set is shared, because many functions have the same number of blocks."""
    return frozenset(range(blocks))


def changed_in_place(operation: s.Operation) -> int | None:
    """The collection that an operation changes in place; None if it changes none."""
    if isinstance(operation, s.Attribute):
        return operation.base if operation.name in _MUTATORS else None
    if isinstance(operation, s.Binary):
        return operation.left if operation.inplace else None
    return operation.base if isinstance(operation, (s.StoreSubscript, s.Delete)) else None
