"""Lowers expressions to ordered operations; short circuits and comprehensions become control flow."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from spmdlint.program.builder import Builder
from spmdlint.program.layout import Span
from spmdlint.program.strings import Template, template
from spmdlint.program.summary import (
    Argument,
    Attribute,
    Await,
    Binary,
    BoolOp,
    Call,
    Collected,
    Compare,
    Const,
    DictDisplay,
    Display,
    FString,
    IfExp,
    Item,
    Load,
    Next,
    Slice,
    StoreAttribute,
    StoreSubscript,
    Subscript,
    Unary,
    ValueId,
    Yield,
)

if TYPE_CHECKING:
    from spmdlint.program.lower import ModuleLowerer

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.Not: "not",
}  # fmt: skip


class Expressions:
    """One method per kind of expression, chosen by the node's class."""

    def __init__(self, module: ModuleLowerer, builder: Builder) -> None:
        self.module = module
        self.b = builder
        self.positions = module.positions
        self.span = module.positions.span
        self.bare = module.positions.bare
        self._calling: dict[ast.AST, bool] = {}

    def value(self, node: ast.AST) -> ValueId:
        """Lower an expression and return the number of its value."""
        method = BY_CLASS.get(type(node))
        if method is None:
            # Syntax newer than this table: the value is unknown, but its parts are still evaluated.
            for child in ast.iter_child_nodes(node):
                if type(child) in BY_CLASS:
                    self.value(child)
            return self.b.emit(Const(Ellipsis), self.span(node))
        return method(self, node)

    # -- names and literals

    def name(self, node: ast.Name) -> ValueId:
        return self.b.emit(Load(self.b.renamed(node.id)), self.span(node))

    def literal(self, node: ast.Constant) -> ValueId:
        return self.b.emit(Const(node.value), self.span(node))

    def fstring(self, node: ast.JoinedStr) -> ValueId:
        return self.template(template(node, self.positions))

    def template(self, node: Template) -> ValueId:
        parts = tuple([self.value(part) for part in node.parts])
        return self.b.emit(FString(parts), self.span(node))

    # -- operators

    def attribute(self, node: ast.Attribute) -> ValueId:
        base = self.value(node.value)
        return self.b.emit(Attribute(base, node.attr), self.span(node))

    def subscript(self, node: ast.Subscript) -> ValueId:
        base = self.value(node.value)
        return self.b.emit(Subscript(base, self.index(node)), self.span(node))

    def index(self, node: ast.Subscript) -> ValueId:
        """The index of a subscript, several as a tuple."""
        inner = node.slice
        if not isinstance(inner, ast.Tuple) or self.positions.enclosed(inner):
            return self.value(inner)
        return self._display("tuple", inner.elts, self.span(node))

    def slice_(self, node: ast.Slice) -> ValueId:
        ends = [self.value(e) if e is not None else None for e in (node.lower, node.upper, node.step)]
        return self.b.emit(Slice(*ends), self.span(node))

    def binary(self, node: ast.BinOp) -> ValueId:
        # A sum of a thousand terms is a thousand levels deep on its left.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        left = self.value(chain[-1].left)
        for step in reversed(chain):
            right = self.value(step.right)
            left = self.b.emit(Binary(OPERATORS[type(step.op)], left, right), self.span(step))
        return left

    def unary(self, node: ast.UnaryOp) -> ValueId:
        operand = self.value(node.operand)
        return self.b.emit(Unary(OPERATORS[type(node.op)], operand), self.span(node))

    def comparison(self, node: ast.Compare) -> ValueId:
        operands = [self.value(node.left), *[self.value(each) for each in node.comparators]]
        operators = [OPERATORS.get(type(each), "?") for each in node.ops]
        return self.b.emit(Compare(tuple(operators), tuple(operands)), self.span(node))

    def boolean(self, node: ast.BoolOp) -> ValueId:
        operator: Literal["and", "or"] = "and" if isinstance(node.op, ast.And) else "or"
        start, end = self.span(node)
        left = self.value(node.values[0])
        for number, operand in enumerate(node.values[1:], 2):
            right = self._guarded(left, operand, when=operator == "and")
            span = (start, end if number == len(node.values) else self.positions.closed(operand))
            left = self.b.emit(BoolOp(operator, (left, right)), span)
        return left

    def conditional(self, node: ast.IfExp) -> ValueId:
        test = self.value(node.test)
        if not self._calls(node.body) and not self._calls(node.orelse):
            body, orelse = self.value(node.body), self.value(node.orelse)
            return self.b.emit(IfExp(test, body, orelse), self.span(node))
        yes, no = self.b.test(test)
        after, reachable = self.b.block(), self.b.reachable
        values = []
        for arm, inner in ((yes, node.body), (no, node.orelse)):
            self.b.begin(arm, reachable=reachable)
            values.append(self.value(inner))
            self.b.go("next", after)
        self.b.begin(after, reachable=reachable)
        return self.b.emit(IfExp(test, values[0], values[1]), self.span(node))

    def _guarded(self, test: ValueId, node: ast.expr, *, when: bool) -> ValueId:
        """Lower an expression that is evaluated only if ``test`` is (not) true.

        Without a call in it nothing can happen there, and it stays in the block.
        """
        if not self._calls(node):
            return self.value(node)
        yes, no = self.b.test(test)
        inside, after = (yes, no) if when else (no, yes)
        reachable = self.b.reachable
        self.b.begin(inside, reachable=reachable)
        value = self.value(node)
        self.b.go("next", after)
        self.b.begin(after, reachable=reachable)
        return value

    def _calls(self, node: ast.AST) -> bool:
        """Whether evaluating an expression may have an effect: it contains a call, or control flow."""
        if isinstance(node, _QUIET):
            return False
        known = self._calling.get(node)
        if known is None:
            known = self._calling[node] = isinstance(node, _CALLING) or any(
                map(self._calls, ast.iter_child_nodes(node))
            )
        return known

    # -- displays

    def tuple_(self, node: ast.Tuple) -> ValueId:
        return self._display("tuple", node.elts, self.bare(node))

    def list_(self, node: ast.List) -> ValueId:
        return self._display("list", node.elts, self.span(node))

    def set_(self, node: ast.Set) -> ValueId:
        return self._display("set", node.elts, self.span(node))

    def _display(self, kind: Literal["tuple", "list", "set"], nodes: Sequence[ast.expr], span: Span) -> ValueId:
        elements, starred = [], []
        for position, element in enumerate(nodes):
            if isinstance(element, ast.Starred):
                starred.append(position)
            elements.append(self.value(_unstarred(element)))
        return self.b.emit(Display(kind, tuple(elements), tuple(starred)), span)

    def dictionary(self, node: ast.Dict) -> ValueId:
        keys: list[ValueId | None] = []
        values: list[ValueId] = []
        for key, value in zip(node.keys, node.values, strict=True):
            keys.append(self.value(key) if key is not None else None)
            values.append(self.value(value))
        return self.b.emit(DictDisplay(tuple(keys), tuple(values)), self.span(node))

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> ValueId:
        loops: list[ValueId] = []
        depth = len(self.b.renamings)
        afters: list[tuple[int, int]] = []
        for clause in node.generators:
            # The first iterable is evaluated outside; later ones see the variables of the clauses before them.
            iterable = self.value(clause.iter)
            self.b.comprehensions += 1
            self.b.renamings.append({name: f"{name}#{self.b.comprehensions}" for name in _target_names(clause.target)})
            header = self.b.block()
            self.b.go("next", header)
            self.b.begin(header, reachable=self.b.reachable)
            body, after = self.b.block(), self.b.block()
            element = self.b.emit(Next(iterable, bool(clause.is_async)), self.bare(clause.target))
            self.b.function.blocks[header].test = element
            self.b.go("iterate", body)
            self.b.go("exhausted", after)
            loops.append(element)
            afters.append((header, after))
            self.b.begin(body, reachable=self.b.reachable)
            self.assign(clause.target, element)
            for condition in clause.ifs:
                yes, no = self.b.test(self.value(condition))
                self.b.edge(no, "continue", header)
                self.b.begin(yes, reachable=self.b.reachable)
        key = self.value(node.key) if isinstance(node, ast.DictComp) else None
        result = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        for header, after in reversed(afters):
            self.b.go("back", header)
            self.b.begin(after, reachable=self.b.reachable)
        del self.b.renamings[depth:]
        return self.b.emit(Collected(_COLLECTED[type(node)], result, key, tuple(loops)), self.bare(node))

    # -- calls and functions

    def call(self, node: ast.Call) -> ValueId:
        function = self.value(node.func)
        return self.b.emit(Call(function, self.arguments(node.args, node.keywords)), self.span(node))

    def arguments(self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> tuple[Argument, ...]:
        # They are evaluated in source order, in which `*more` may follow a keyword.
        both: list[ast.expr | ast.keyword] = [*args, *keywords]
        if args and keywords and isinstance(args[-1], ast.Starred):
            both.sort(key=self.span)
        return tuple([self._argument(each) for each in both])

    def _argument(self, node: ast.expr | ast.keyword) -> Argument:
        if isinstance(node, ast.keyword):
            return Argument(self.value(node.value), node.arg, "" if node.arg is not None else "**")
        if isinstance(node, ast.Starred):
            return Argument(self.value(node.value), None, "*")
        return Argument(self.value(node))

    def lambda_(self, node: ast.Lambda) -> ValueId:
        return self.module.function(self, node, self.span(node))

    def walrus(self, node: ast.NamedExpr) -> ValueId:
        value = self.value(node.value)
        # It binds in the scope around the comprehension, not in the comprehension.
        held, self.b.renamings = self.b.renamings, []
        self.assign(node.target, value)
        self.b.renamings = held
        return value

    def await_(self, node: ast.Await) -> ValueId:
        return self.b.emit(Await(self.value(node.value)), self.span(node))

    def yield_(self, node: ast.Yield) -> ValueId:
        self.b.function.generator = True
        value = self.value(node.value) if node.value is not None else None
        return self.b.emit(Yield(value), self.span(node))

    def yield_from(self, node: ast.YieldFrom) -> ValueId:
        self.b.function.generator = True
        return self.b.emit(Yield(self.value(node.value), delegate=True), self.span(node))

    # -- targets

    def assign(self, target: ast.AST, value: ValueId, annotation: ValueId | None = None) -> None:
        """Bind a target: a name, an attribute, an element, or a pattern of them."""
        if isinstance(target, ast.Name):
            self.b.store(target.id, value, self.span(target), annotation)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            self.b.emit(StoreAttribute(base, target.attr, value), self.span(target))
        elif isinstance(target, ast.Subscript):
            base = self.value(target.value)
            self.b.emit(StoreSubscript(base, self.index(target), value), self.span(target))
        elif isinstance(target, (ast.Tuple, ast.List)):
            total = len(target.elts)
            star = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), total)
            for position, element in enumerate(target.elts):
                index = position if position <= star else position - total
                item = Item(value, index, total, star=position == star)
                inner = _unstarred(element)
                self.assign(inner, self.b.emit(item, self.bare(inner)))


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _target_names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in _target_names(_unstarred(element))]
    return []


BY_CLASS: dict[type[ast.AST], Callable[[Any, Any], ValueId]] = {
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.call,
    ast.Constant: Expressions.literal,
    ast.JoinedStr: Expressions.fstring,
    Template: Expressions.template,
    ast.Subscript: Expressions.subscript,
    ast.Slice: Expressions.slice_,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.boolean,
    ast.Compare: Expressions.comparison,
    ast.IfExp: Expressions.conditional,
    ast.Tuple: Expressions.tuple_,
    ast.List: Expressions.list_,
    ast.Set: Expressions.set_,
    ast.Dict: Expressions.dictionary,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension,
    ast.Lambda: Expressions.lambda_,
    ast.NamedExpr: Expressions.walrus,
    ast.Await: Expressions.await_,
    ast.Yield: Expressions.yield_,
    ast.YieldFrom: Expressions.yield_from,
}
_COLLECTED: dict[type[ast.AST], Literal["list", "set", "dict", "generator"]] = {
    ast.ListComp: "list",
    ast.SetComp: "set",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
}
_QUIET = (ast.Name, ast.Constant)
_CALLING = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)
