"""Lowers expressions to ordered operations; short circuits and comprehensions become control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import libcst as cst

from spmdlint.program.builder import Builder
from spmdlint.program.layout import Span
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
    "Add": "+", "AddAssign": "+", "Subtract": "-", "SubtractAssign": "-", "Multiply": "*", "MultiplyAssign": "*",
    "Divide": "/", "DivideAssign": "/", "FloorDivide": "//", "FloorDivideAssign": "//", "Modulo": "%",
    "ModuloAssign": "%", "Power": "**", "PowerAssign": "**", "MatrixMultiply": "@", "MatrixMultiplyAssign": "@",
    "LeftShift": "<<", "LeftShiftAssign": "<<", "RightShift": ">>", "RightShiftAssign": ">>", "BitAnd": "&",
    "BitAndAssign": "&", "BitOr": "|", "BitOrAssign": "|", "BitXor": "^", "BitXorAssign": "^",
    "Equal": "==", "NotEqual": "!=", "LessThan": "<", "LessThanEqual": "<=", "GreaterThan": ">",
    "GreaterThanEqual": ">=", "Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in",
    "Minus": "-", "Plus": "+", "BitInvert": "~", "Not": "not",
}  # fmt: skip


_FEW_DIGITS = 19


class Expressions:
    """One method per kind of expression, chosen by the node's class."""

    def __init__(self, module: ModuleLowerer, builder: Builder) -> None:
        self.module = module
        self.b = builder
        self.spans = module.spans
        self._calling: dict[int, bool] = {}
        self.by_class: dict[type[cst.CSTNode], Callable[[Any], ValueId]] = {
            cst.Name: self.name,
            cst.Attribute: self.attribute,
            cst.Call: self.call,
            cst.SimpleString: self.literal,
            cst.Integer: self.literal,
            cst.Float: self.literal,
            cst.Imaginary: self.literal,
            cst.ConcatenatedString: self.concatenated,
            cst.FormattedString: self.fstring,
            cst.Subscript: self.subscript,
            cst.BinaryOperation: self.binary,
            cst.UnaryOperation: self.unary,
            cst.BooleanOperation: self.boolean,
            cst.Comparison: self.comparison,
            cst.IfExp: self.conditional,
            cst.Tuple: self.display,
            cst.List: self.display,
            cst.Set: self.display,
            cst.Dict: self.dictionary,
            cst.ListComp: self.comprehension,
            cst.SetComp: self.comprehension,
            cst.GeneratorExp: self.comprehension,
            cst.DictComp: self.comprehension,
            cst.Lambda: self.lambda_,
            cst.NamedExpr: self.walrus,
            cst.Await: self.await_,
            cst.Yield: self.yield_,
            cst.Ellipsis: self.ellipsis,
        }

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node stands, without white space and parentheses around it."""
        return self.spans[id(node)]

    def value(self, node: cst.CSTNode) -> ValueId:
        """Lower an expression and return the number of its value."""
        method = self.by_class.get(type(node))
        if method is None:
            # Syntax newer than this list: the value is unknown, and what it is made of is still evaluated.
            for child in node.children:
                if type(child) in self.by_class:
                    self.value(child)
            return self.b.emit(Const(Ellipsis), self.span(node))
        return method(node)

    # -- names and literals

    def name(self, node: cst.Name) -> ValueId:
        span = self.span(node)
        if node.value in ("True", "False", "None"):
            return self.b.emit(Const({"True": True, "False": False, "None": None}[node.value]), span)
        return self.b.emit(Load(self.b.renamed(node.value)), span)

    def literal(self, node: cst.SimpleString | cst.Integer | cst.Float | cst.Imaginary) -> ValueId:
        text = node.value
        if text.isascii() and text.isdecimal() and len(text) < _FEW_DIGITS:
            return self.b.emit(Const(int(text)), self.span(node))
        if text[0] in "'\"" and _plain(text):
            return self.b.emit(Const(text[1:-1]), self.span(node))
        try:
            value: object = node.evaluated_value
        except (ValueError, SyntaxError):  # "\N{no such name}", an integer longer than Python converts
            value = node.value
        return self.b.emit(Const(value), self.span(node))

    def ellipsis(self, node: cst.Ellipsis) -> ValueId:
        return self.b.emit(Const(Ellipsis), self.span(node))

    def concatenated(self, node: cst.ConcatenatedString) -> ValueId:
        parts: list[cst.CSTNode] = []
        rest: cst.CSTNode = node
        while isinstance(rest, cst.ConcatenatedString):
            parts.append(rest.left)
            rest = rest.right
        parts.append(rest)
        if all(isinstance(part, cst.SimpleString) for part in parts):
            try:
                values = [part.evaluated_value for part in parts if isinstance(part, cst.SimpleString)]
                return self.b.emit(Const(type(values[0])().join(values)), self.span(node))  # type: ignore[arg-type]
            except (ValueError, SyntaxError, TypeError):
                pass
        return self.b.emit(FString(tuple(self.value(part) for part in parts)), self.span(node))

    def fstring(self, node: cst.FormattedString) -> ValueId:
        parts: list[ValueId] = []
        self._fstring_parts(node.parts, parts)
        return self.b.emit(FString(tuple(parts)), self.span(node))

    def _fstring_parts(self, contents: Sequence[cst.BaseFormattedStringContent], parts: list[ValueId]) -> None:
        for part in contents:
            if isinstance(part, cst.FormattedStringExpression):
                parts.append(self.value(part.expression))
                if part.format_spec:
                    self._fstring_parts(part.format_spec, parts)
            elif isinstance(part, cst.FormattedStringText):
                parts.append(self.b.emit(Const(part.value), self.span(part)))

    # -- operators

    def attribute(self, node: cst.Attribute) -> ValueId:
        base = self.value(node.value)
        return self.b.emit(Attribute(base, node.attr.value), self.span(node))

    def subscript(self, node: cst.Subscript) -> ValueId:
        base = self.value(node.value)
        return self.b.emit(Subscript(base, self.index(node)), self.span(node))

    def index(self, node: cst.Subscript) -> ValueId:
        """The index of a subscript, several as a tuple."""
        indices: list[ValueId] = []
        starred: list[int] = []
        for element in node.slice:
            inner = element.slice
            if isinstance(inner, cst.Index):
                if inner.star:
                    starred.append(len(indices))
                indices.append(self.value(inner.value))
            elif isinstance(inner, cst.Slice):
                ends = [self.value(e) if e is not None else None for e in (inner.lower, inner.upper, inner.step)]
                indices.append(self.b.emit(Slice(*ends), self.span(inner)))
        if len(indices) == 1 and not starred and not isinstance(node.slice[0].comma, cst.Comma):
            return indices[0]
        return self.b.emit(Display("tuple", tuple(indices), tuple(starred)), self.span(node))

    def binary(self, node: cst.BinaryOperation) -> ValueId:
        # A sum of a thousand terms is a thousand levels deep on its left.
        chain = [node]
        while isinstance(chain[-1].left, cst.BinaryOperation):
            chain.append(chain[-1].left)
        left = self.value(chain[-1].left)
        for step in reversed(chain):
            right = self.value(step.right)
            left = self.b.emit(Binary(OPERATORS[type(step.operator).__name__], left, right), self.span(step))
        return left

    def unary(self, node: cst.UnaryOperation) -> ValueId:
        operand = self.value(node.expression)
        return self.b.emit(Unary(OPERATORS[type(node.operator).__name__], operand), self.span(node))

    def comparison(self, node: cst.Comparison) -> ValueId:
        operands = [self.value(node.left)]
        operators = []
        for target in node.comparisons:
            operators.append(OPERATORS.get(type(target.operator).__name__, "?"))
            operands.append(self.value(target.comparator))
        return self.b.emit(Compare(tuple(operators), tuple(operands)), self.span(node))

    def boolean(self, node: cst.BooleanOperation) -> ValueId:
        operator: Literal["and", "or"] = "and" if isinstance(node.operator, cst.And) else "or"
        left = self.value(node.left)
        right = self._guarded(left, node.right, when=operator == "and")
        return self.b.emit(BoolOp(operator, (left, right)), self.span(node))

    def conditional(self, node: cst.IfExp) -> ValueId:
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

    def _guarded(self, test: ValueId, node: cst.BaseExpression, *, when: bool) -> ValueId:
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

    def _calls(self, node: cst.CSTNode) -> bool:
        """Does an expression hold something whose evaluation may matter: a call, or control flow of its own."""
        known = self._calling.get(id(node))
        if known is None:
            known = self._calling[id(node)] = (
                False
                if isinstance(node, _QUIET)
                else self._calls(node.value)
                if isinstance(node, cst.Attribute)
                else isinstance(node, _CALLING)
                or any(
                    self._calls(child) for child in node.children if isinstance(child, (cst.BaseExpression, *_INNER))
                )
            )
        return known

    # -- displays

    def display(self, node: cst.Tuple | cst.List | cst.Set) -> ValueId:
        kind: Literal["tuple", "list", "set"] = (
            "tuple" if isinstance(node, cst.Tuple) else "list" if isinstance(node, cst.List) else "set"
        )
        elements, starred = [], []
        for position, element in enumerate(node.elements):
            if isinstance(element, cst.StarredElement):
                starred.append(position)
            elements.append(self.value(element.value))
        return self.b.emit(Display(kind, tuple(elements), tuple(starred)), self.span(node))

    def dictionary(self, node: cst.Dict) -> ValueId:
        keys: list[ValueId | None] = []
        values: list[ValueId] = []
        for element in node.elements:
            keys.append(self.value(element.key) if isinstance(element, cst.DictElement) else None)
            values.append(self.value(element.value))
        return self.b.emit(DictDisplay(tuple(keys), tuple(values)), self.span(node))

    def comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> ValueId:
        loops: list[ValueId] = []
        depth = len(self.b.renamings)
        afters: list[tuple[int, int]] = []
        clause: cst.CompFor | None = node.for_in
        while clause is not None:
            # The first iterable is evaluated outside; later ones see the variables of the clauses before them.
            iterable = self.value(clause.iter)
            self.b.comprehensions += 1
            self.b.renamings.append({name: f"{name}#{self.b.comprehensions}" for name in _target_names(clause.target)})
            header = self.b.block()
            self.b.go("next", header)
            self.b.begin(header, reachable=self.b.reachable)
            body, after = self.b.block(), self.b.block()
            element = self.b.emit(Next(iterable, clause.asynchronous is not None), self.span(clause.target))
            self.b.function.blocks[header].test = element
            self.b.go("iterate", body)
            self.b.go("exhausted", after)
            loops.append(element)
            afters.append((header, after))
            self.b.begin(body, reachable=self.b.reachable)
            self.assign(clause.target, element)
            for condition in clause.ifs:
                yes, no = self.b.test(self.value(condition.test))
                self.b.edge(no, "continue", header)
                self.b.begin(yes, reachable=self.b.reachable)
            clause = clause.inner_for_in
        key = self.value(node.key) if isinstance(node, cst.DictComp) else None
        result = self.value(node.value if isinstance(node, cst.DictComp) else node.elt)
        for header, after in reversed(afters):
            self.b.go("back", header)
            self.b.begin(after, reachable=self.b.reachable)
        del self.b.renamings[depth:]
        kind: Literal["list", "set", "dict", "generator"] = (
            "list" if isinstance(node, cst.ListComp)
            else "set" if isinstance(node, cst.SetComp)
            else "dict" if isinstance(node, cst.DictComp)
            else "generator"
        )  # fmt: skip
        return self.b.emit(Collected(kind, result, key, tuple(loops)), self.span(node))

    # -- calls and functions

    def call(self, node: cst.Call) -> ValueId:
        function = self.value(node.func)
        return self.b.emit(Call(function, self.arguments(node.args)), self.span(node))

    def arguments(self, args: Sequence[cst.Arg]) -> tuple[Argument, ...]:
        return tuple(
            Argument(self.value(arg.value), arg.keyword.value if arg.keyword else None, arg.star) for arg in args
        )

    def lambda_(self, node: cst.Lambda) -> ValueId:
        return self.module.function(self, node)

    def walrus(self, node: cst.NamedExpr) -> ValueId:
        value = self.value(node.value)
        if isinstance(node.target, cst.Name):
            # It binds in the scope around the comprehension, not in it.
            held, self.b.renamings = self.b.renamings, []
            self.assign(node.target, value)
            self.b.renamings = held
        return value

    def await_(self, node: cst.Await) -> ValueId:
        return self.b.emit(Await(self.value(node.expression)), self.span(node))

    def yield_(self, node: cst.Yield) -> ValueId:
        self.b.function.generator = True
        if isinstance(node.value, cst.From):
            return self.b.emit(Yield(self.value(node.value.item), delegate=True), self.span(node))
        value = self.value(node.value) if node.value is not None else None
        return self.b.emit(Yield(value), self.span(node))

    # -- targets

    def assign(self, target: cst.CSTNode, value: ValueId, annotation: ValueId | None = None) -> None:
        """Bind a target: a name, an attribute, an element, or a pattern of them."""
        if isinstance(target, cst.Name):
            self.b.store(target.value, value, self.span(target), annotation)
        elif isinstance(target, cst.Attribute):
            base = self.value(target.value)
            self.b.emit(StoreAttribute(base, target.attr.value, value), self.span(target))
        elif isinstance(target, cst.Subscript):
            base = self.value(target.value)
            self.b.emit(StoreSubscript(base, self.index(target), value), self.span(target))
        elif isinstance(target, (cst.Tuple, cst.List)):
            total = len(target.elements)
            star = next((i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)), total)
            for position, element in enumerate(target.elements):
                index = position if position <= star else position - total
                item = Item(value, index, total, star=position == star)
                self.assign(element.value, self.b.emit(item, self.span(element.value)))


def _plain(text: str) -> bool:
    """Is a literal of a string what stands between its quotes: to evaluate one means to compile it."""
    return "\\" not in text and text[1:2] != text[0] and "\n" not in text


def _target_names(target: cst.CSTNode) -> list[str]:
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, (cst.Tuple, cst.List)):
        return [name for element in target.elements for name in _target_names(element.value)]
    return []


_QUIET = (cst.Name, cst.SimpleString, cst.Integer, cst.Float, cst.Ellipsis)
_CALLING = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda)
_INNER = (
    cst.ComparisonTarget, cst.BaseElement, cst.BaseDictElement, cst.CompFor, cst.CompIf, cst.SubscriptElement,
    cst.Index, cst.Slice, cst.FormattedStringExpression, cst.Arg,
)  # fmt: skip
