"""From text to a summary: one parse, one span pass, one walk. The rest of the linter lowers code only through this."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from spmdlint.interpreter import deep, uncollected, unwarned
from spmdlint.program.builder import Builder
from spmdlint.program.expressions import Expressions
from spmdlint.program.idle import leave_out
from spmdlint.program.layout import Layout, Places, Span
from spmdlint.program.statements import Statements
from spmdlint.program.strings import UnknownStringError
from spmdlint.program.summary import (
    Argument,
    Comment,
    Essence,
    Formal,
    Function,
    FunctionKind,
    MakeClass,
    MakeFunction,
    Parameter,
    ParameterKind,
    Return,
    Summary,
    ValueId,
    compact,
)
from spmdlint.program.syntax import SUITES, Syntax, parse, parse_newer, too_deep
from spmdlint.program.syntax import LoweringError as LoweringError

Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"

_SPEAKS = re.compile(r"spmdlint:|noqa", re.IGNORECASE)


def lower(text: str, *, essence: bool = False) -> Summary:
    """The summary of one module. ``essence``: with a version that has no idle code.

    Raises:
        LoweringError: the text does not parse, or is nested too deeply.

    """
    with uncollected(), unwarned():
        syntax = parse(text)
        try:
            with deep():
                try:
                    summary = ModuleLowerer(syntax).summary()
                except UnknownStringError:
                    syntax = parse_newer(text)
                    summary = ModuleLowerer(syntax).summary()
                if essence and (left_out := leave_out(syntax.tree, syntax.positions)) is not None:
                    summary.essence = Essence(ModuleLowerer(syntax).summary().functions, left_out)
                return summary
        except RecursionError:
            raise too_deep() from None


class ModuleLowerer:
    """Holds what all functions of a module share: the spans and the list of functions."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.positions = syntax.positions
        self.text = syntax.positions.text
        self.functions: list[Function] = []
        self.places = Places(syntax.line_starts)
        self.layout = Layout()

    def summary(self) -> Summary:
        """Lower the whole module."""
        top = self._scope("module", "<module>", None, (0, len(self.text)))
        statements = Statements(self, self._builder(top))
        statements.body(self.syntax.tree.body)
        statements.b.go("return", 1)
        self.layout.keep(self.places)
        compact(self.functions)
        return Summary(self.functions, self.layout, tuple(self._comments()))

    def _comments(self) -> Iterator[Comment]:
        lowercase = self.text.lower()
        if "noqa" not in lowercase and "spmdlint" not in lowercase:
            return
        for offset, text in self.syntax.comments():
            if _SPEAKS.search(text):
                row, column = self.places.position(offset)
                before = self.text[self.places.line_starts[row - 1] : offset]
                yield Comment(row, column, text, own_line=not before.strip())

    # -- scopes

    def function(self, outer: Expressions, node: Definition, span: Span) -> ValueId:
        """Lower a `def` or a lambda and emit the value that it evaluates to; ``span`` is that of its name."""
        defaults: list[tuple[str, ValueId]] = []
        annotations: list[tuple[str, ValueId]] = []
        formals = tuple(_formals(node.args))
        for formal, parameter, default in formals:
            if default is not None:
                defaults.append((formal.name, outer.value(default)))
            if parameter.annotation is not None:
                annotations.append((formal.name, outer.value(parameter.annotation)))
        if isinstance(node, ast.Lambda):
            function = self._scope("lambda", "<lambda>", outer.b.function, span)
        else:
            if node.returns is not None:
                annotations.append(("return", outer.value(node.returns)))
            function = self._scope("function", node.name, outer.b.function, span)
            function.asynchronous = isinstance(node, ast.AsyncFunctionDef)
        function.formals = tuple([formal for formal, _, _ in formals])
        inner = Statements(self, self._builder(function))
        hidden = {formal.name for formal in function.formals}
        inner.b.renamings = [
            {name: new for name, new in renaming.items() if name not in hidden} for renaming in outer.b.renamings
        ]
        for formal, parameter, _ in formals:
            start, _ = self.positions.span(parameter)
            at = start, start + len(formal.name)
            inner.b.store(formal.name, inner.b.emit(Parameter(formal.name), at), at)
        if isinstance(node, ast.Lambda):
            inner.b.emit(Return(inner.value(node.body)), self.positions.bare(node.body))
            inner.b.leave_function()
        else:
            function.globals, function.nonlocals = _declared(node.body)
            inner.body(node.body)
            inner.b.go("return", 1)
        return outer.b.emit(MakeFunction(function.index, tuple(defaults), tuple(annotations)), span)

    def class_(
        self,
        outer: Expressions,
        node: ast.ClassDef,
        span: Span,
        bases: tuple[ValueId, ...],
        keywords: tuple[Argument, ...],
    ) -> ValueId:
        """Lower a class body and emit the class; ``span`` is that of its name."""
        body = self._scope("class", node.name, outer.b.function, span)
        inner = Statements(self, self._builder(body))
        inner.body(node.body)
        inner.b.go("return", 1)
        return outer.b.emit(MakeClass(body.index, bases, keywords), span)

    def _scope(self, kind: FunctionKind, name: str, parent: Function | None, span: tuple[int, int]) -> Function:
        if parent is None or parent.kind == "module":
            qualname = name
        else:
            qualname = f"{parent.qualname}.{name}"
        index = None if parent is None else parent.index
        function = Function(len(self.functions), kind, name, qualname, index, self.layout)
        self.functions.append(function)
        self.places.extents.append(span)
        self.places.spans.append([])
        return function

    def _builder(self, function: Function) -> Builder:
        return Builder(function, self.places.spans[function.index])


def _formals(parameters: ast.arguments) -> Iterator[tuple[Formal, ast.arg, ast.expr | None]]:
    """The parameters in source order, each with its default."""
    positional = [*parameters.posonlyargs, *parameters.args]
    required = len(positional) - len(parameters.defaults)
    for number, parameter in enumerate(positional):
        default = parameters.defaults[number - required] if number >= required else None
        kind: ParameterKind = "positional-only" if number < len(parameters.posonlyargs) else "standard"
        yield Formal(parameter.arg, kind, default is not None), parameter, default
    if parameters.vararg is not None:
        yield Formal(parameters.vararg.arg, "*"), parameters.vararg, None
    for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        yield Formal(parameter.arg, "keyword-only", default is not None), parameter, default
    if parameters.kwarg is not None:
        yield Formal(parameters.kwarg.arg, "**"), parameters.kwarg, None


def _declared(body: Sequence[ast.stmt]) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a function declares `global` and `nonlocal`, without those of nested scopes."""
    globals_: set[str] = set()
    nonlocals: set[str] = set()
    pending: list[ast.AST] = [*body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Global):
            globals_.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            nonlocals.update(node.names)
        else:
            for name in SUITES.get(type(node), ()):
                pending.extend(getattr(node, name))
    return frozenset(globals_), frozenset(nonlocals)
