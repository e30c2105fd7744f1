"""Converts LibCST's tree of a module to Python's own classes, for syntax that the running Python does not know.

Only what is lowered is kept: white space, type parameters and the like are not. Positions are offsets in characters,
given as columns of one long row.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import libcst as cst

from spmdlint.program.spans import record_spans
from spmdlint.program.strings import Template

Node = TypeVar("Node", bound=ast.AST)

_OPERATORS: dict[str, type[ast.AST]] = {
    "Add": ast.Add, "Subtract": ast.Sub, "Multiply": ast.Mult, "Divide": ast.Div, "FloorDivide": ast.FloorDiv,
    "Modulo": ast.Mod, "Power": ast.Pow, "MatrixMultiply": ast.MatMult, "LeftShift": ast.LShift,
    "RightShift": ast.RShift, "BitAnd": ast.BitAnd, "BitOr": ast.BitOr, "BitXor": ast.BitXor, "Equal": ast.Eq,
    "NotEqual": ast.NotEq, "LessThan": ast.Lt, "LessThanEqual": ast.LtE, "GreaterThan": ast.Gt,
    "GreaterThanEqual": ast.GtE, "Is": ast.Is, "IsNot": ast.IsNot, "In": ast.In, "NotIn": ast.NotIn,
    "Minus": ast.USub, "Plus": ast.UAdd, "BitInvert": ast.Invert, "Not": ast.Not, "And": ast.And, "Or": ast.Or,
}  # fmt: skip
_SINGLETONS = {"True": True, "False": False, "None": None}
_LOAD = ast.Load()
# In Python's tree these include their parentheses.
_PARENTHESIZED = (cst.Tuple, cst.GeneratorExp, cst.MatchTuple)


class Unknown(ast.expr):
    """An unknown expression, with the expressions that it is made of."""

    _fields = ("parts",)

    def __init__(self, parts: list[ast.expr]) -> None:
        super().__init__()
        self.parts = parts


def converted(module: cst.Module) -> tuple[ast.Module, list[tuple[int, str]]]:
    """A module, and its comments with their offsets."""
    recorder = record_spans(module)
    return ast.Module(_Statements(recorder.spans).suite(module), []), recorder.comments


def _operator(node: cst.CSTNode) -> Any:
    name = type(node).__name__
    return _OPERATORS.get(name.removesuffix("Assign"), ast.operator)()


class _Expressions:
    """A method for each kind of expression."""

    def __init__(self, spans: dict[int, tuple[int, int]]) -> None:
        self._spans = spans

    def at(self, place: cst.CSTNode, node: Node) -> Node:
        """The new node, at the position of the old one."""
        start, end = self._spans[id(place)]
        if isinstance(place, _PARENTHESIZED) and place.lpar:
            start, end = self._spans[id(place.lpar[-1])][0], self._spans[id(place.rpar[0])][1]
        node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
        node.col_offset, node.end_col_offset = start, end  # type: ignore[attr-defined]
        return node

    def expr(self, node: cst.CSTNode) -> ast.expr:
        method = _EXPRESSIONS.get(type(node))
        made = self.unknown(node) if method is None else method(self, node)
        return self.at(node, made)

    def maybe(self, node: cst.CSTNode | None) -> ast.expr | None:
        return None if node is None else self.expr(node)

    def exprs(self, nodes: Sequence[cst.CSTNode]) -> list[ast.expr]:
        return [self.expr(node) for node in nodes]

    def unknown(self, node: cst.CSTNode) -> ast.expr:
        return Unknown([self.expr(child) for child in node.children if type(child) in _EXPRESSIONS])

    # -- names and literals

    def name(self, node: cst.Name) -> ast.expr:
        if node.value in _SINGLETONS:
            return ast.Constant(_SINGLETONS[node.value])
        return ast.Name(node.value, _LOAD)

    def literal(self, node: cst.SimpleString | cst.Integer | cst.Float | cst.Imaginary) -> ast.expr:
        try:
            return ast.Constant(node.evaluated_value)
        except (ValueError, SyntaxError):  # "\N{no such name}", an integer longer than Python converts
            return ast.Constant(node.value)

    def ellipsis(self, _: cst.Ellipsis) -> ast.expr:
        return ast.Constant(Ellipsis)

    def concatenated(self, node: cst.ConcatenatedString) -> ast.expr:
        literals: list[cst.CSTNode] = []
        rest: cst.CSTNode = node
        while isinstance(rest, cst.ConcatenatedString):
            literals.append(rest.left)
            rest = rest.right
        literals.append(rest)
        if all(isinstance(literal, cst.SimpleString) for literal in literals):
            try:
                values = [literal.evaluated_value for literal in literals if isinstance(literal, cst.SimpleString)]
                return ast.Constant(type(values[0])().join(values))  # type: ignore[arg-type]
            except (ValueError, SyntaxError, TypeError):
                pass
        return Template(self.exprs(literals))

    def fstring(self, node: cst.FormattedString) -> ast.expr:
        parts: list[ast.expr] = []
        self._fstring_parts(node.parts, parts)
        return Template(parts)

    def _fstring_parts(self, contents: Sequence[cst.BaseFormattedStringContent], parts: list[ast.expr]) -> None:
        for part in contents:
            if isinstance(part, cst.FormattedStringExpression):
                parts.append(self.expr(part.expression))
                if part.format_spec:
                    self._fstring_parts(part.format_spec, parts)
            elif isinstance(part, cst.FormattedStringText):
                parts.append(self.at(part, ast.Constant(part.value)))

    # -- operators

    def attribute(self, node: cst.Attribute) -> ast.expr:
        return ast.Attribute(self.expr(node.value), node.attr.value, _LOAD)

    def subscript(self, node: cst.Subscript) -> ast.expr:
        indices = [self._index(element.slice) for element in node.slice]
        several = len(indices) > 1 or isinstance(node.slice[0].comma, cst.Comma) or isinstance(indices[0], ast.Starred)
        index = indices[0]
        if several:
            index = ast.Tuple(indices, _LOAD)
            start, end = self._spans[id(node.slice[0])][0], self._spans[id(node.slice[-1])][1]
            index.lineno = index.end_lineno = 1
            index.col_offset, index.end_col_offset = start, end
        return ast.Subscript(self.expr(node.value), index, _LOAD)

    def _index(self, node: cst.BaseSlice) -> ast.expr:
        if isinstance(node, cst.Slice):
            made = self.at(node, ast.Slice(self.maybe(node.lower), self.maybe(node.upper), self.maybe(node.step)))
            last = node.second_colon if isinstance(node.second_colon, cst.Colon) else node.first_colon
            if (node.upper if last is node.first_colon else node.step) is None:
                made.end_col_offset = self._spans[id(last.whitespace_after)][0]
            return made
        if isinstance(node, cst.Index):
            inner = self.expr(node.value)
            return self.at(node, ast.Starred(inner, _LOAD)) if node.star else inner
        return self.at(node, self.unknown(node))

    def binary(self, node: cst.BinaryOperation) -> ast.expr:
        # A sum of a thousand terms is a thousand levels deep on its left.
        chain = [node]
        while isinstance(chain[-1].left, cst.BinaryOperation):
            chain.append(chain[-1].left)
        made = self.expr(chain[-1].left)
        for step in reversed(chain):
            made = self.at(step, ast.BinOp(made, _operator(step.operator), self.expr(step.right)))
        return made

    def unary(self, node: cst.UnaryOperation) -> ast.expr:
        return ast.UnaryOp(_operator(node.operator), self.expr(node.expression))

    def boolean(self, node: cst.BooleanOperation) -> ast.expr:
        return ast.BoolOp(_operator(node.operator), [self.expr(node.left), self.expr(node.right)])

    def comparison(self, node: cst.Comparison) -> ast.expr:
        operators = [_operator(target.operator) for target in node.comparisons]
        return ast.Compare(self.expr(node.left), operators, self.exprs([t.comparator for t in node.comparisons]))

    def conditional(self, node: cst.IfExp) -> ast.expr:
        return ast.IfExp(self.expr(node.test), self.expr(node.body), self.expr(node.orelse))

    # -- displays

    def tuple_(self, node: cst.Tuple) -> ast.expr:
        return ast.Tuple(self.elements(node.elements), _LOAD)

    def list_(self, node: cst.List) -> ast.expr:
        return ast.List(self.elements(node.elements), _LOAD)

    def set_(self, node: cst.Set) -> ast.expr:
        return ast.Set(self.elements(node.elements))

    def elements(self, nodes: Sequence[cst.BaseElement]) -> list[ast.expr]:
        return [self.expr(node if isinstance(node, cst.StarredElement) else node.value) for node in nodes]

    def starred(self, node: cst.StarredElement) -> ast.expr:
        return ast.Starred(self.expr(node.value), _LOAD)

    def dictionary(self, node: cst.Dict) -> ast.expr:
        keys = [self.expr(each.key) if isinstance(each, cst.DictElement) else None for each in node.elements]
        return ast.Dict(keys, self.exprs([each.value for each in node.elements]))

    def comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> ast.expr:
        kind: Any = {cst.ListComp: ast.ListComp, cst.SetComp: ast.SetComp}.get(type(node), ast.GeneratorExp)
        made: ast.expr = kind(self.expr(node.elt), self.clauses(node.for_in))
        return made

    def dict_comprehension(self, node: cst.DictComp) -> ast.expr:
        return ast.DictComp(self.expr(node.key), self.expr(node.value), self.clauses(node.for_in))

    def clauses(self, node: cst.CompFor | None) -> list[ast.comprehension]:
        made = []
        while node is not None:
            ifs = self.exprs([each.test for each in node.ifs])
            asynchronous = int(node.asynchronous is not None)
            made.append(ast.comprehension(self.expr(node.target), self.expr(node.iter), ifs, asynchronous))
            node = node.inner_for_in
        return made

    # -- calls and functions

    def call(self, node: cst.Call) -> ast.expr:
        return ast.Call(self.expr(node.func), *self.arguments(node.args))

    def arguments(self, nodes: Sequence[cst.Arg]) -> tuple[list[ast.expr], list[ast.keyword]]:
        args: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        for node in nodes:
            value = self.expr(node.value)
            if node.keyword is not None or node.star == "**":
                name = None if node.keyword is None else node.keyword.value
                keywords.append(self.at(node, ast.keyword(name, value)))
            else:
                args.append(self.at(node, ast.Starred(value, _LOAD)) if node.star else value)
        return args, keywords

    def lambda_(self, node: cst.Lambda) -> ast.expr:
        return ast.Lambda(self.parameters(node.params), self.expr(node.body))

    def parameters(self, node: cst.Parameters) -> ast.arguments:
        positional = [*node.posonly_params, *node.params]
        return ast.arguments(
            [self.parameter(each) for each in node.posonly_params],
            [self.parameter(each) for each in node.params],
            self.parameter(node.star_arg) if isinstance(node.star_arg, cst.Param) else None,
            [self.parameter(each) for each in node.kwonly_params],
            [self.maybe(each.default) for each in node.kwonly_params],
            self.parameter(node.star_kwarg) if node.star_kwarg is not None else None,
            [self.expr(each.default) for each in positional if each.default is not None],
        )

    def parameter(self, node: cst.Param) -> ast.arg:
        annotation = None if node.annotation is None else self.expr(node.annotation.annotation)
        return self.at(node.name, ast.arg(node.name.value, annotation))

    def walrus(self, node: cst.NamedExpr) -> ast.expr:
        target: Any = self.expr(node.target)
        return ast.NamedExpr(target, self.expr(node.value))

    def await_(self, node: cst.Await) -> ast.expr:
        return ast.Await(self.expr(node.expression))

    def yield_(self, node: cst.Yield) -> ast.expr:
        if isinstance(node.value, cst.From):
            return ast.YieldFrom(self.expr(node.value.item))
        return ast.Yield(self.maybe(node.value))


class _Statements(_Expressions):
    """A method for each kind of statement, and for each kind of pattern."""

    def suite(self, node: cst.CSTNode | None) -> list[ast.stmt]:
        """The statements of a block; none if there is no block."""
        made = []
        for statement in getattr(node, "body", ()):
            for part in statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,):
                method = _STATEMENTS.get(type(part), _Statements.nothing)
                made.append(self.at(part, method(self, part)))
        return made

    def otherwise(self, node: cst.Else | cst.Finally | cst.If | None) -> list[ast.stmt]:
        if isinstance(node, cst.If):
            return [self.at(node, self.if_(node))]
        return [] if node is None else self.suite(node.body)

    def nothing(self, _: cst.CSTNode) -> ast.stmt:
        return ast.Pass()

    def expression(self, node: cst.Expr) -> ast.stmt:
        return ast.Expr(self.expr(node.value))

    def assign(self, node: cst.Assign) -> ast.stmt:
        return ast.Assign(self.exprs([each.target for each in node.targets]), self.expr(node.value))

    def annotated(self, node: cst.AnnAssign) -> ast.stmt:
        target: Any = self.expr(node.target)
        return ast.AnnAssign(target, self.expr(node.annotation.annotation), self.maybe(node.value), 1)

    def augmented(self, node: cst.AugAssign) -> ast.stmt:
        target: Any = self.expr(node.target)
        return ast.AugAssign(target, _operator(node.operator), self.expr(node.value))

    def return_(self, node: cst.Return) -> ast.stmt:
        return ast.Return(self.maybe(node.value))

    def raise_(self, node: cst.Raise) -> ast.stmt:
        return ast.Raise(self.maybe(node.exc), None)

    def assert_(self, node: cst.Assert) -> ast.stmt:
        return ast.Assert(self.expr(node.test), self.maybe(node.msg))

    def delete(self, node: cst.Del) -> ast.stmt:
        return ast.Delete([self.expr(node.target)])

    def break_(self, _: cst.Break) -> ast.stmt:
        return ast.Break()

    def continue_(self, _: cst.Continue) -> ast.stmt:
        return ast.Continue()

    def global_(self, node: cst.Global) -> ast.stmt:
        return ast.Global([each.name.value for each in node.names])

    def nonlocal_(self, node: cst.Nonlocal) -> ast.stmt:
        return ast.Nonlocal([each.name.value for each in node.names])

    def import_(self, node: cst.Import) -> ast.stmt:
        return ast.Import(self.aliases(node.names))

    def import_from(self, node: cst.ImportFrom) -> ast.stmt:
        module = None if node.module is None else _dotted(node.module)
        names = node.names
        aliases = [self.at(names, ast.alias("*"))] if isinstance(names, cst.ImportStar) else self.aliases(names)
        return ast.ImportFrom(module, aliases, len(node.relative))

    def aliases(self, nodes: Sequence[cst.ImportAlias]) -> list[ast.alias]:
        return [self.at(n, ast.alias(_dotted(n.name), _dotted(n.asname.name) if n.asname else None)) for n in nodes]

    def if_(self, node: cst.If) -> ast.stmt:
        return ast.If(self.expr(node.test), self.suite(node.body), self.otherwise(node.orelse))

    def for_(self, node: cst.For) -> ast.stmt:
        kind: Any = ast.For if node.asynchronous is None else ast.AsyncFor
        made: ast.stmt = kind(
            self.expr(node.target), self.expr(node.iter), self.suite(node.body), self.otherwise(node.orelse)
        )
        return made

    def while_(self, node: cst.While) -> ast.stmt:
        return ast.While(self.expr(node.test), self.suite(node.body), self.otherwise(node.orelse))

    def try_(self, node: cst.Try | cst.TryStar) -> ast.stmt:
        handlers = [
            self.at(
                each,
                ast.ExceptHandler(
                    self.maybe(each.type), _dotted(each.name.name) if each.name else None, self.suite(each.body)
                ),
            )
            for each in node.handlers
        ]
        return ast.Try(self.suite(node.body), handlers, self.otherwise(node.orelse), self.otherwise(node.finalbody))

    def with_(self, node: cst.With) -> ast.stmt:
        kind: Any = ast.With if node.asynchronous is None else ast.AsyncWith
        items = [ast.withitem(self.expr(i.item), self.maybe(i.asname.name if i.asname else None)) for i in node.items]
        made: ast.stmt = kind(items, self.suite(node.body))
        return made

    def def_(self, node: cst.FunctionDef) -> ast.stmt:
        kind: Any = ast.FunctionDef if node.asynchronous is None else ast.AsyncFunctionDef
        made: ast.stmt = kind(
            node.name.value,
            self.parameters(node.params),
            self.suite(node.body),
            self.exprs([each.decorator for each in node.decorators]),
            None if node.returns is None else self.expr(node.returns.annotation),
        )
        return made

    def class_(self, node: cst.ClassDef) -> ast.stmt:
        args, keywords = self.arguments((*node.bases, *node.keywords))
        decorators = self.exprs([each.decorator for each in node.decorators])
        return ast.ClassDef(node.name.value, args, keywords, self.suite(node.body), decorators)

    # -- match

    def match(self, node: cst.Match) -> ast.stmt:
        cases = [
            ast.match_case(self.pattern(each.pattern), self.maybe(each.guard), self.suite(each.body))
            for each in node.cases
        ]
        return ast.Match(self.expr(node.subject), cases)

    def pattern(self, node: cst.CSTNode) -> ast.pattern:
        return self.at(node.value if isinstance(node, cst.MatchValue) else node, self._pattern(node))

    def patterns(self, nodes: Sequence[Any]) -> list[ast.pattern]:
        """The patterns of a sequence."""
        return [self.pattern(getattr(each, "value", each)) for each in nodes]

    def _pattern(self, node: cst.CSTNode) -> ast.pattern:
        if isinstance(node, cst.MatchAs):
            name = None if node.name is None else node.name.value
            return ast.MatchAs(None if node.pattern is None else self.pattern(node.pattern), name)
        if isinstance(node, cst.MatchValue):
            return ast.MatchValue(self.expr(node.value))
        if isinstance(node, cst.MatchSingleton):
            return ast.MatchSingleton(_SINGLETONS[node.value.value])
        if isinstance(node, cst.MatchClass):
            named, keywords = [_dotted(each.key) for each in node.kwds], [self.pattern(e.pattern) for e in node.kwds]
            return ast.MatchClass(self.expr(node.cls), self.patterns(node.patterns), named, keywords)
        if isinstance(node, cst.MatchMapping):
            keys = self.exprs([each.key for each in node.elements])
            rest = None if node.rest is None else node.rest.value
            return ast.MatchMapping(keys, [self.pattern(each.pattern) for each in node.elements], rest)
        if isinstance(node, cst.MatchOr):
            return ast.MatchOr([self.pattern(each.pattern) for each in node.patterns])
        if isinstance(node, cst.MatchSequence):
            return ast.MatchSequence(self.patterns(node.patterns))
        return ast.MatchStar(node.name.value if isinstance(node, cst.MatchStar) and node.name is not None else None)


def _dotted(node: cst.CSTNode) -> str:
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if isinstance(node, cst.Name):
        parts.append(node.value)
    return ".".join(reversed(parts))


_EXPRESSIONS: dict[type[cst.CSTNode], Callable[[Any, Any], ast.expr]] = {
    cst.Name: _Expressions.name,
    cst.Attribute: _Expressions.attribute,
    cst.Call: _Expressions.call,
    cst.SimpleString: _Expressions.literal,
    cst.Integer: _Expressions.literal,
    cst.Float: _Expressions.literal,
    cst.Imaginary: _Expressions.literal,
    cst.ConcatenatedString: _Expressions.concatenated,
    cst.FormattedString: _Expressions.fstring,
    cst.Subscript: _Expressions.subscript,
    cst.BinaryOperation: _Expressions.binary,
    cst.UnaryOperation: _Expressions.unary,
    cst.BooleanOperation: _Expressions.boolean,
    cst.Comparison: _Expressions.comparison,
    cst.IfExp: _Expressions.conditional,
    cst.Tuple: _Expressions.tuple_,
    cst.List: _Expressions.list_,
    cst.Set: _Expressions.set_,
    cst.StarredElement: _Expressions.starred,
    cst.Dict: _Expressions.dictionary,
    cst.ListComp: _Expressions.comprehension,
    cst.SetComp: _Expressions.comprehension,
    cst.GeneratorExp: _Expressions.comprehension,
    cst.DictComp: _Expressions.dict_comprehension,
    cst.Lambda: _Expressions.lambda_,
    cst.NamedExpr: _Expressions.walrus,
    cst.Await: _Expressions.await_,
    cst.Yield: _Expressions.yield_,
    cst.Ellipsis: _Expressions.ellipsis,
}
_STATEMENTS: dict[type[cst.CSTNode], Callable[[Any, Any], ast.stmt]] = {
    cst.Expr: _Statements.expression,
    cst.Assign: _Statements.assign,
    cst.AnnAssign: _Statements.annotated,
    cst.AugAssign: _Statements.augmented,
    cst.Return: _Statements.return_,
    cst.Raise: _Statements.raise_,
    cst.Assert: _Statements.assert_,
    cst.Del: _Statements.delete,
    cst.Break: _Statements.break_,
    cst.Continue: _Statements.continue_,
    cst.Global: _Statements.global_,
    cst.Nonlocal: _Statements.nonlocal_,
    cst.Import: _Statements.import_,
    cst.ImportFrom: _Statements.import_from,
    cst.If: _Statements.if_,
    cst.For: _Statements.for_,
    cst.While: _Statements.while_,
    cst.Try: _Statements.try_,
    cst.TryStar: _Statements.try_,
    cst.With: _Statements.with_,
    cst.FunctionDef: _Statements.def_,
    cst.ClassDef: _Statements.class_,
    cst.Match: _Statements.match,
}
