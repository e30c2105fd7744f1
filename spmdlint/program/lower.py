"""From text to a summary: one parse, one span pass, one walk. The only module through which the rest lowers code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from spmdlint.interpreter import deep, uncollected
from spmdlint.program.builder import Builder
from spmdlint.program.expressions import Expressions
from spmdlint.program.layout import Layout, Places
from spmdlint.program.spans import record_spans
from spmdlint.program.statements import Statements
from spmdlint.program.summary import (
    Argument,
    Comment,
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
)

_NEWLINE = re.compile("\r\n|\r|\n")
_SPEAKS = re.compile(r"spmdlint:|noqa", re.IGNORECASE)


@dataclass(eq=False)  # not frozen: `with` writes the traceback of an exception that passes through it
class LoweringError(Exception):
    """The text is not Python that can be linted; row and column from 1."""

    row: int
    column: int
    message: str


def lower(text: str) -> Summary:
    """The summary of one module.

    Raises:
        LoweringError: the text does not parse, or is nested too deeply.

    """
    with deep(), uncollected():
        try:
            lowerer = ModuleLowerer(cst.parse_module(text), text)
            try:
                return lowerer.summary()
            finally:
                lowerer.forget()
        except cst.ParserSyntaxError as error:
            raise LoweringError(error.raw_line, error.raw_column + 1, error.message) from None
        except RecursionError:
            raise LoweringError(1, 1, "This file is nested too deeply to be linted.") from None


class ModuleLowerer:
    """Holds what all functions of a module share: the spans and the list of functions."""

    def __init__(self, module: cst.Module, text: str) -> None:
        recorder = record_spans(module)
        self.spans = recorder.spans
        self.comments = recorder.comments
        self.module = module
        self.text = text
        self.functions: list[Function] = []
        self.places = Places([0, *(match.end() for match in _NEWLINE.finditer(text))])
        self.layout = Layout()

    def summary(self) -> Summary:
        """Lower the whole module."""
        top = self._scope("module", "<module>", None, (0, len(self.text)))
        statements = Statements(self, self._builder(top))
        statements.body(self.module.body)
        statements.b.go("return", 1)
        self.layout.keep(self.places)
        return Summary(self.functions, self.layout, tuple(self._comments()))

    def forget(self) -> None:
        """Let go of the syntax tree. What lowered it refers to itself, and nothing is collected for the time being."""
        self.spans.clear()
        self.module = cst.Module(())

    def _comments(self) -> Iterator[Comment]:
        for offset, text in self.comments:
            if _SPEAKS.search(text):
                row, column = self.places.position(offset)
                before = self.text[self.places.line_starts[row - 1] : offset]
                yield Comment(row, column, text, own_line=not before.strip())

    # -- scopes

    def function(self, outer: Expressions, node: cst.FunctionDef | cst.Lambda) -> ValueId:
        """Lower a `def` or a lambda and emit the value that it evaluates to."""
        formals: list[Formal] = []
        defaults: list[tuple[str, ValueId]] = []
        annotations: list[tuple[str, ValueId]] = []
        for param, kind in _formals(node.params):
            formals.append(Formal(param.name.value, kind, param.default is not None))
            if param.default is not None:
                defaults.append((param.name.value, outer.value(param.default)))
            if param.annotation is not None:
                annotations.append((param.name.value, outer.value(param.annotation.annotation)))
        if isinstance(node, cst.FunctionDef):
            if node.returns is not None:
                annotations.append(("return", outer.value(node.returns.annotation)))
            span = self.spans[id(node.name)]
            function = self._scope("function", node.name.value, outer.b.function, span)
            function.asynchronous = node.asynchronous is not None
        else:
            span = self.spans[id(node)]
            function = self._scope("lambda", "<lambda>", outer.b.function, span)
        function.formals = tuple(formals)
        inner = Statements(self, self._builder(function))
        hidden = {formal.name for formal in formals}
        inner.b.renamings = [
            {name: new for name, new in renaming.items() if name not in hidden} for renaming in outer.b.renamings
        ]
        for param, _ in _formals(node.params):
            at = self.spans[id(param.name)]
            inner.b.store(param.name.value, inner.b.emit(Parameter(param.name.value), at), at)
        if isinstance(node, cst.FunctionDef):
            function.globals, function.nonlocals = _declared(node.body)
            inner.body(node.body)
            inner.b.go("return", 1)
        else:
            value = inner.value(node.body)
            inner.b.emit(Return(value), self.spans[id(node.body)])
            inner.b.leave_function()
        return outer.b.emit(MakeFunction(function.index, tuple(defaults), tuple(annotations)), span)

    def class_(
        self, outer: Expressions, node: cst.ClassDef, bases: tuple[ValueId, ...], keywords: tuple[Argument, ...]
    ) -> ValueId:
        """Lower a class body and emit the class."""
        span = self.spans[id(node.name)]
        body = self._scope("class", node.name.value, outer.b.function, span)
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


def _formals(parameters: cst.Parameters) -> Iterator[tuple[cst.Param, ParameterKind]]:
    for param in parameters.posonly_params:
        yield param, "positional-only"
    for param in parameters.params:
        yield param, "standard"
    if isinstance(parameters.star_arg, cst.Param):
        yield parameters.star_arg, "*"
    for param in parameters.kwonly_params:
        yield param, "keyword-only"
    if parameters.star_kwarg is not None:
        yield parameters.star_kwarg, "**"


def _declared(body: cst.CSTNode) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a function declares `global` and `nonlocal`, not looking into nested scopes."""
    globals_: set[str] = set()
    nonlocals: set[str] = set()
    pending: list[cst.CSTNode] = [body]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Global):
            globals_.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Nonlocal):
            nonlocals.update(item.name.value for item in node.names)
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
            continue
        elif isinstance(node, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.SimpleStatementLine)):
            pending.extend(node.body)
        else:
            for name in ("body", "orelse", "finalbody"):
                child = getattr(node, name, None)
                if isinstance(child, cst.CSTNode):
                    pending.append(child)
            pending.extend(getattr(node, "handlers", ()))
            pending.extend(getattr(node, "cases", ()))
    return frozenset(globals_), frozenset(nonlocals)
