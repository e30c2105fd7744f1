"""Types the values of a mapped body, operation by operation.

Demand-driven like the evaluator, which determines the callees; this module only handles the types. A value that is read
from outside the body is the same on all devices: every device gets the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.memo import Memo
from spmdlint.analysis.evaluation.values import External, Instance, Site, certain, constant
from spmdlint.analysis.meshtypes import application
from spmdlint.analysis.meshtypes.alternatives import may_count, told_apart
from spmdlint.analysis.meshtypes.contractions import is_turned, laid_out, over_matrices, summand
from spmdlint.analysis.meshtypes.dimensions import of_product, piled_in
from spmdlint.analysis.meshtypes.primitives import Event, computed, cut_out, shared_draws, with_bias
from spmdlint.analysis.meshtypes.scalars import computed_from
from spmdlint.analysis.meshtypes.scopes import Region, Scope
from spmdlint.analysis.meshtypes.states import (
    ALL_ALIKE,
    BOTTOM,
    DIFFERENT,
    LITERAL,
    UNKNOWN,
    Held,
    Leaf,
    Many,
    Mark,
    Record,
    Row,
    Type,
    changed,
    either_type,
    element_of,
    flat,
    is_alike,
    item_of,
    without_layout,
)
from spmdlint.knowledge.typing import Typed, Typing
from spmdlint.program import summary as s

_OF_SHAPES = frozenset(("shape", "dtype", "ndim", "size", "itemsize", "sharding", "weak_type", "__name__"))
# Functions that pass arrays of traced code to the host.
_REPORTING = frozenset(("callback", "print", "io_callback", "pure_callback"))
_ARITHMETIC: dict[str, Typed] = {"+": "sumlike", "-": "sumlike", "*": "product", "@": "product", "/": "quotient"}


def from_here(site: Site, leaf: Leaf) -> Leaf:
    """The leaf, with the origin of each axis along which it varies set to a site."""
    axes = tuple((name, Held(held.state, site) if held.state in DIFFERENT else held) for name, held in leaf.axes)
    return replace(leaf, axes=axes)


class Typer:
    """Types one mapped body.

    ``events`` are the hazards found on the way; ``paths`` the calls in the body that lead to an operation, when it was
    first typed; ``sent`` the axes along which the body permutes; ``splitting`` the collectives that split a dimension;
    ``reduced`` the arguments that each sum or mean over devices is made from. Of the arguments of a map over rows,
    ``copies`` are those that the body treats as a model, ``derived`` those among them that it takes derivatives by, and
    ``keys`` those that random numbers are drawn from. ``vectorised`` counts the `vmap` transformations around the code
    being typed; ``stacked`` are the axes that they bind, ``settled`` where a gradient is reduced over such an axis, and
    ``applied`` the gradients that are applied without that. ``reduced_losses``: by gradient, where its loss is reduced.
    """

    def __init__(self, evaluator: Evaluator, calls: Calls, table: Typing, region: Region) -> None:
        self.ev = evaluator
        self.calls = calls
        self.table = table
        self.region = region
        self.events: dict[Event, None] = {}
        self.sent: set[str] = set()
        self.splitting: set[Site] = set()
        self.scopes = 0
        self.vectorised = 0
        self.stacked: list[str] = []
        self.settled: dict[str, Site] = {}
        self.applied: dict[Mark, Site] = {}
        self.reduced_losses: dict[Mark, Site] = {}
        self.copies: set[int] = set()
        self.derived: set[int] = set()
        self.keys: set[int] = set()
        self.calling: list[Site] = []
        self.paths: dict[Site, tuple[Site, ...]] = {}
        self._memo: Memo[Type] = Memo(BOTTOM, UNKNOWN)

    def tell(self, events: Iterable[Event]) -> None:
        self.events.update(dict.fromkeys(events))

    # -- functions

    def returned(self, scope: Scope) -> Type:
        """The type of a function's result: the merge of all its returns."""
        return self._memo.once((scope, "return"), lambda: self._returned(scope))

    def entered(self, scope: Scope, site: Site) -> Type:
        """The type of the result of a function that is called here."""
        self.calling.append(site)
        try:
            return self.returned(scope)
        finally:
            self.calling.pop()

    def _returned(self, scope: Scope) -> Type:
        self._type_reported(scope)
        found = self.returns(scope)
        if len(found) == 1:
            return found[0][1]
        # If the paths differ, the reader wants to see the one that varies.
        types = [changed(each, partial(from_here, site)) for site, each in found]
        return either_type(types, told_apart(self.ev, scope.frame)) if types else LITERAL

    def _type_reported(self, scope: Scope) -> None:
        """Type what a function only passes to the host: no result depends on it, but its collectives run."""
        code = scope.frame.code
        for number, call in code.calls_named(_REPORTING).items():
            if code.function.block_of[number] in self.ev.live_blocks(scope.frame):
                for argument in call.arguments:
                    self.type(scope, argument.value)

    def returns(self, scope: Scope) -> list[tuple[Site, Type]]:
        """The reachable return statements, each with its type."""
        function = self.ev.function(scope.frame)
        if function.generator or function.asynchronous:
            return [(Site(scope.frame.ref, 0), UNKNOWN)]
        found = []
        for block in sorted(self.ev.live_blocks(scope.frame)):
            for number in function.blocks[block].operations:
                operation = function.operations[number]
                if isinstance(operation, s.Return):
                    value = LITERAL if operation.value is None else self.type(scope, operation.value)
                    found.append((Site(scope.frame.ref, number), value))
        return found

    # -- values

    def type(self, scope: Scope, number: int) -> Type:
        """The type of an operation's value."""
        return self._memo.once((scope, number), lambda: self._type(scope, number))

    def types(self, scope: Scope, numbers: Iterable[int]) -> list[Leaf]:
        return [flat(self.type(scope, number)) for number in numbers]

    def _type(self, scope: Scope, number: int) -> Type:
        operation = self.ev.function(scope.frame).operations[number]
        site = Site(scope.frame.ref, number)
        if isinstance(operation, (s.Const, s.FString, s.MakeFunction, s.MakeClass, s.Import)):
            return LITERAL
        if isinstance(operation, s.Load):
            return self._load(scope, number, operation)
        if isinstance(operation, s.Parameter):
            return scope.parameters.get(operation.name, UNKNOWN)
        if isinstance(operation, s.Store):
            return self.type(scope, operation.value)
        if isinstance(operation, s.Attribute):
            return self._attribute(scope, number, operation)
        if isinstance(operation, s.Subscript):
            return self._subscript(scope, operation, site)
        if isinstance(operation, s.Call):
            return application.call(self, scope, number, operation)
        if isinstance(operation, (s.Display, s.DictDisplay, s.Collected, s.Next, s.Item)):
            return self._tree(scope, operation)
        return self._operator(scope, operation, site)

    def _operator(self, scope: Scope, operation: s.Operation, site: Site) -> Type:
        if isinstance(operation, s.Binary):
            return self._binary(scope, operation, site)
        if isinstance(operation, s.Unary):
            return self.compute("linear" if operation.operator == "-" else "joined", scope, (operation.operand,), site)
        if isinstance(operation, s.Compare):
            return self.compute("joined", scope, operation.operands, site)
        if isinstance(operation, s.Slice):
            given = [n for n in (operation.lower, operation.upper, operation.step) if n is not None]
            return self.compute("joined", scope, given, site)
        if isinstance(operation, s.BoolOp):
            return either_type([self.type(scope, n) for n in operation.operands], told_apart=False)
        if isinstance(operation, s.IfExp):
            answer = self.ev.decided(scope.frame, operation.test)
            if answer is not None:
                return self.type(scope, operation.body if answer else operation.orelse)
            freely = not may_count(self.ev.function(scope.frame), operation.test)
            return either_type([self.type(scope, n) for n in (operation.body, operation.orelse)], freely)
        return UNKNOWN

    def compute(self, typed: Typed, scope: Scope, numbers: Iterable[int], site: Site) -> Leaf:
        """The type of an elementwise operation."""
        return self.combine(typed, self.types(scope, numbers), site)

    def combine(self, typed: Typed, operands: list[Leaf], site: Site, *, whole: bool = False) -> Leaf:
        self.paths.setdefault(site, tuple(self.calling))
        self.tell(shared_draws(typed, operands, site))
        return computed(typed, operands, site, whole=whole)

    def _binary(self, scope: Scope, operation: s.Binary, site: Site) -> Type:
        left, right = self.type(scope, operation.left), self.type(scope, operation.right)
        if isinstance(left, Row) and isinstance(right, Row) and operation.operator == "+":
            return Row(left.elements + right.elements)
        typed: Typed = _ARITHMETIC.get(operation.operator, "nonlinear" if operation.operator == "**" else "joined")
        operands = [flat(left), flat(right)]
        if operation.operator == "@":
            # A random matrix shared by all devices is a layer's weights, not noise.
            self.paths.setdefault(site, tuple(self.calling))
            product = computed(typed, operands, site)
            self.tell(piled_in(operands[0], operands[1], site))
            if not is_turned(scope.frame.code.operations, operation.left):
                product = summand(product, over_matrices(*operands), site)
            return replace(product, layout=of_product(*operands))
        found = laid_out(self.combine(typed, operands, site), operands)
        operations = scope.frame.code.operations
        found = computed_from(found, operands, [operations[operation.left], operations[operation.right]])
        if operation.operator == "+":
            if self._adds_to_product(scope, operation.left, operation.right):
                found = with_bias(operands[0], operands[1], found, site)
            elif self._adds_to_product(scope, operation.right, operation.left):
                found = with_bias(operands[1], operands[0], found, site)
        return found

    def _adds_to_product(self, scope: Scope, product: int, added: int) -> bool:
        """Whether one side of a sum is a matrix product, and the other an unscaled name, attribute or element."""
        operations = scope.frame.code.operations
        root = operations[scope.frame.code.root_of(product)]
        multiplies = isinstance(root, s.Binary) and root.operator == "@"
        if isinstance(root, s.Call):
            callee = self.ev.callee(scope.frame, root)
            multiplies = isinstance(callee, External) and self.table.typed(callee.name) == "product"
        return multiplies and isinstance(operations[added], (s.Load, s.Attribute, s.Subscript))

    # -- names

    def _load(self, scope: Scope, number: int, operation: s.Load) -> Type:
        module = self.ev.project.modules[scope.frame.ref.path]
        function = self.ev.function(scope.frame)
        home = module.summary.scope_of(function, operation.name)
        if home is function:
            stores = sorted(self.ev.reaching(scope.frame, number, operation.name))
            types = [self.type(scope, store) for store in stores]
            if not types:
                return ALL_ALIKE
            return self._filled(scope, number, operation.name, either_type(types, told_apart(self.ev, scope.frame)))
        outer = scope.frame.outer
        while home is not None and outer is not None and self.ev.function(outer) is not home:
            outer = outer.outer
        around = scope.find(outer) if outer is not None and home is not None else None
        if around is None or home is None:
            return ALL_ALIKE
        live = self.ev.live_blocks(around.frame)
        stores = [n for n in home.stores.get(operation.name, ()) if home.block_of[n] in live]
        at = next((each.at for each in scope.chain() if each.caller is around), None)
        if at is not None:
            stores = sorted(self.ev.reaching(around.frame, at, operation.name)) or stores
        return either_type([self.type(around, store) for store in stores], told_apart=False)

    def _filled(self, scope: Scope, number: int, name: str, made: Type) -> Type:
        """A dictionary with the entries that are stored into it before it is read, key by key."""
        if not isinstance(made, Record):
            return made
        function, flow = self.ev.function(scope.frame), self.ev.flow(scope.frame.ref)
        items = dict(made.items)
        for put, operation in enumerate(function.operations[:number]):
            added = self._added(scope, function, name, operation)
            if added is not None and function.block_of[put] in flow.on_every_way():
                items.update(added.items)
            if not isinstance(operation, s.StoreSubscript) or not _loads(function, operation.base, name):
                continue
            if function.block_of[put] not in self.ev.live_blocks(scope.frame):
                continue
            key = constant(self.ev.value(scope.frame, operation.index))
            if key is None:
                return UNKNOWN
            value = self.type(scope, operation.value)
            if function.block_of[put] in (*flow.on_every_way(), function.block_of[number]) or key.value not in items:
                items[key.value] = value
            else:
                items[key.value] = either_type([items[key.value], value], told_apart=False)
        return Record(tuple(items.items()), made.rest)

    def _added(self, scope: Scope, function: s.Function, name: str, operation: s.Operation) -> Record | None:
        """The dictionary that ``name.update(other)`` adds to the one with a name; None for any other operation."""
        method = function.operations[operation.function] if isinstance(operation, s.Call) else None
        if not isinstance(operation, s.Call) or not isinstance(method, s.Attribute) or method.name != "update":
            return None
        if len(operation.arguments) != 1 or not _loads(function, method.base, name):
            return None
        added = self.type(scope, operation.arguments[0].value)
        return added if isinstance(added, Record) else None

    def _attribute(self, scope: Scope, number: int, operation: s.Attribute) -> Type:
        if operation.name in _OF_SHAPES:
            return LITERAL
        base = self.type(scope, operation.base)
        if isinstance(base, Record):
            return base.get(operation.name) or UNKNOWN
        if isinstance(base, Row):
            return flat(base)
        if self.region.by_hand and operation.name in self.table.rows.counters and isinstance(base, Leaf) and base.rows:
            return ALL_ALIKE
        if base == ALL_ALIKE and isinstance(certain(self.ev.value(scope.frame, operation.base)), Instance):
            return ALL_ALIKE
        return without_layout(base) if isinstance(base, Leaf) else base

    def _subscript(self, scope: Scope, operation: s.Subscript, site: Site) -> Type:
        base = self.type(scope, operation.base)
        key = constant(self.ev.value(scope.frame, operation.index))
        if key is not None and not isinstance(base, Leaf):
            return item_of(base, key.value)
        index = flat(self.type(scope, operation.index))
        if isinstance(base, Row) and isinstance(self.ev.function(scope.frame).operations[operation.index], s.Slice):
            return flat(base)
        if isinstance(base, Many) and is_alike(index):
            return base.element
        if index.literal:
            return self.combine("linear", [flat(base), index], site)
        return self.combine("joined", [cut_out(flat(base)), index], site)

    # -- trees

    def _tree(self, scope: Scope, operation: s.Operation) -> Type:
        if isinstance(operation, s.Display):
            inside = [self.type(scope, n) for n in operation.elements]
            spread = [t for p, t in enumerate(inside) if p in operation.starred]
            if spread and all(isinstance(each, Row) for each in spread) and operation.kind != "set":
                rows = [
                    t.elements if isinstance(t, Row) and p in operation.starred else (t,) for p, t in enumerate(inside)
                ]
                return Row(tuple(each for row in rows for each in row))
            if spread or operation.kind == "set":
                parts = [element_of(t) if p in operation.starred else t for p, t in enumerate(inside)]
                return Many(either_type(parts, told_apart=False))
            return Row(tuple(inside))
        if isinstance(operation, s.DictDisplay):
            return self._dictionary(scope, operation)
        if isinstance(operation, s.Collected):
            element = self.type(scope, operation.element)
            return flat(element) if operation.kind == "dict" else Many(element)
        if isinstance(operation, s.Next):
            return element_of(self.type(scope, operation.iterable))
        assert isinstance(operation, s.Item)
        value = self.type(scope, operation.value)
        if operation.star:
            return Many(element_of(value))
        return item_of(value, operation.index)

    def _dictionary(self, scope: Scope, operation: s.DictDisplay) -> Type:
        items: dict[object, Type] = {}
        rest: list[Type] = []
        for key, number in zip(operation.keys, operation.values, strict=True):
            value = self.type(scope, number)
            known = constant(self.ev.value(scope.frame, key)) if key is not None else None
            if known is not None:
                items[known.value] = value
            elif key is None and isinstance(value, Record):
                items.update(dict(value.items))
                rest += [value.rest] if value.rest is not None else []
            else:
                rest.append(value)
        return Record(tuple(items.items()), either_type(rest, told_apart=False) if rest else None)

    def each(self, tree: Type, typed: Typed, site: Site) -> Type:
        """A function of one array, applied to every array in a pytree."""
        return changed(tree, lambda leaf: self.combine(typed, [leaf], site))


def _loads(function: s.Function, number: int, name: str) -> bool:
    """Whether an operation is a load of the name."""
    operation = function.operations[number]
    return isinstance(operation, s.Load) and operation.name == name
