"""Lowers statements: branches, loops, `try`, `with` and `match` become blocks and edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from spmdlint.program.builder import Builder, Loop
from spmdlint.program.expressions import OPERATORS, Expressions
from spmdlint.program.summary import (
    Argument,
    Binary,
    Call,
    Captured,
    Caught,
    Const,
    Declare,
    Delete,
    Enter,
    Import,
    ImportStar,
    Leave,
    Load,
    Matches,
    Next,
    Raise,
    Return,
    Store,
    ValueId,
)

if TYPE_CHECKING:
    from spmdlint.program.lower import ModuleLowerer


class Statements(Expressions):
    """One method per kind of statement, chosen by the node's class."""

    def __init__(self, module: ModuleLowerer, builder: Builder) -> None:
        super().__init__(module, builder)
        self.by_statement: dict[type[cst.CSTNode], Callable[[Any], None]] = {
            cst.Expr: self.expression,
            cst.Assign: self.assignment,
            cst.AnnAssign: self.annotated,
            cst.AugAssign: self.augmented,
            cst.Return: self.return_,
            cst.Raise: self.raise_,
            cst.Assert: self.assert_,
            cst.Del: self.delete,
            cst.Pass: void,
            cst.Break: self.break_,
            cst.Continue: self.continue_,
            cst.Global: void,
            cst.Nonlocal: void,
            cst.Import: self.import_,
            cst.ImportFrom: self.import_from,
            cst.If: self.if_,
            cst.For: self.for_,
            cst.While: self.while_,
            cst.Try: self.try_,
            cst.TryStar: self.try_,
            cst.With: self.with_,
            cst.FunctionDef: self.def_,
            cst.ClassDef: self.class_,
            cst.Match: self.match,
        }

    def body(self, body: cst.BaseSuite | Sequence[cst.CSTNode]) -> None:
        """Lower the statements of a suite in order."""
        statements: Sequence[cst.CSTNode]
        statements = body.body if isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)) else body  # type: ignore[assignment]
        for statement in statements:
            parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)
            for part in parts:
                method = self.by_statement.get(type(part))
                if method is not None:
                    method(part)

    # -- simple statements

    def expression(self, node: cst.Expr) -> None:
        if not isinstance(node.value, cst.SimpleString):  # a docstring does nothing
            self.value(node.value)

    def assignment(self, node: cst.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target.target, value)

    def annotated(self, node: cst.AnnAssign) -> None:
        annotation = self.value(node.annotation.annotation)
        if node.value is not None:
            self.assign(node.target, self.value(node.value), annotation)
        elif isinstance(node.target, cst.Name):
            self.b.emit(Declare(node.target.value, annotation), self.span(node.target))

    def augmented(self, node: cst.AugAssign) -> None:
        left = self.value(node.target)
        right = self.value(node.value)
        operator = OPERATORS[type(node.operator).__name__]
        self.assign(node.target, self.b.emit(Binary(operator, left, right, inplace=True), self.span(node)))

    def return_(self, node: cst.Return) -> None:
        value = self.value(node.value) if node.value is not None else None
        self.b.emit(Return(value), self.span(node))
        self.b.leave_function()

    def raise_(self, node: cst.Raise) -> None:
        exception = self.value(node.exc) if node.exc is not None else None
        self.b.emit(Raise(exception), self.span(node))
        self.b.throw()

    def assert_(self, node: cst.Assert) -> None:
        yes, no = self.b.test(self.value(node.test))
        reachable = self.b.reachable
        self.b.begin(no, reachable=reachable)
        message = self.value(node.msg) if node.msg is not None else None
        self.b.emit(Raise(message), self.span(node))
        self.b.throw()
        self.b.begin(yes, reachable=reachable)

    def delete(self, node: cst.Del) -> None:
        targets = [e.value for e in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
        for target in targets:
            if isinstance(target, cst.Name):
                self.b.emit(Delete(self.b.renamed(target.value)), self.span(target))
            elif isinstance(target, (cst.Attribute, cst.Subscript)):
                self.b.emit(Delete(None, self.value(target.value)), self.span(target))

    def break_(self, node: cst.Break) -> None:
        if self.b.loops:
            loop = self.b.loops[-1]
            self.b.leave("break", loop.after, loop.cleanups)

    def continue_(self, node: cst.Continue) -> None:
        if self.b.loops:
            loop = self.b.loops[-1]
            self.b.leave("continue", loop.header, loop.cleanups)

    # -- imports

    def import_(self, node: cst.Import) -> None:
        for alias in node.names:
            dotted = _dotted(alias.name)
            span = self.span(alias)
            if alias.asname is not None:
                self.assign(alias.asname.name, self.b.emit(Import(dotted), span))
            else:
                value = self.b.emit(Import(dotted, root=True), span)
                self.b.store(dotted.split(".")[0], value, span)

    def import_from(self, node: cst.ImportFrom) -> None:
        module = _dotted(node.module) if node.module is not None else ""
        level = len(node.relative)
        if isinstance(node.names, cst.ImportStar):
            self.b.emit(ImportStar(module, level), self.span(node))
            return
        for alias in node.names:
            name = _dotted(alias.name)
            value = self.b.emit(Import(module, level, name), self.span(alias))
            if alias.asname is not None:
                self.assign(alias.asname.name, value)
            else:
                self.b.store(name, value, self.span(alias))

    # -- branches and loops

    def if_(self, node: cst.If) -> None:
        yes, no = self.b.test(self.value(node.test))
        reachable = self.b.reachable
        after = self.b.block()
        self.b.begin(yes, reachable=reachable)
        self.body(node.body)
        joined = self.b.reachable
        self.b.go("next", after)
        self.b.begin(no, reachable=reachable)
        if isinstance(node.orelse, cst.If):
            self.if_(node.orelse)
        elif node.orelse is not None:
            self.body(node.orelse.body)
        self.b.go("next", after)
        self.b.begin(after, reachable=joined or self.b.reachable)

    def for_(self, node: cst.For) -> None:
        iterable = self.value(node.iter)
        header, body, orelse, after = (self.b.block() for _ in range(4))
        self.b.go("next", header)
        reachable = self.b.reachable
        self.b.begin(header, reachable=reachable)
        element = self.b.emit(Next(iterable, node.asynchronous is not None), self.span(node.target))
        self.b.function.blocks[header].test = element
        self.b.go("iterate", body)
        self.b.go("exhausted", orelse)
        self.b.begin(body, reachable=reachable)
        self.assign(node.target, element)
        self._loop_body(node.body, header, after)
        self.b.begin(orelse, reachable=reachable)
        if node.orelse is not None:
            self.body(node.orelse.body)
        self.b.go("next", after)
        self.b.begin(after, reachable=reachable)

    def while_(self, node: cst.While) -> None:
        header, after = self.b.block(), self.b.block()
        self.b.go("next", header)
        reachable = self.b.reachable
        self.b.begin(header, reachable=reachable)
        value = self.value(node.test)
        if self._always(value):
            # `while True:` ends by break, return or an exception only.
            body = self.b.block()
            self.b.go("next", body)
            self.b.begin(body, reachable=reachable)
            self._loop_body(node.body, header, after)
            self.b.begin(after, reachable=self.b.arrives(after))
            return
        body, orelse = self.b.test(value)
        self.b.begin(body, reachable=reachable)
        self._loop_body(node.body, header, after)
        self.b.begin(orelse, reachable=reachable)
        if node.orelse is not None:
            self.body(node.orelse.body)
        self.b.go("next", after)
        self.b.begin(after, reachable=reachable)

    def _loop_body(self, body: cst.BaseSuite, header: int, after: int) -> None:
        self.b.loops.append(Loop(header, after, len(self.b.cleanups)))
        self.body(body)
        self.b.go("back", header)
        self.b.loops.pop()

    def _always(self, value: ValueId) -> bool:
        operation = self.b.function.operations[value]
        return isinstance(operation, Const) and bool(operation.value)

    # -- exceptions and context managers

    def try_(self, node: cst.Try | cst.TryStar) -> None:
        outer = self.b.handlers[-1]
        after = self.b.block()
        cleanup: Callable[[], None] | None = None
        if node.finalbody is not None:
            final_body = node.finalbody.body
            cleanup = lambda: self.body(final_body)  # noqa: E731
            failing = self.b.block()  # the copy of `finally` that an exception runs through
            self.b.cleanups.append(cleanup)
            self.b.handlers.append(failing)
        if node.handlers:
            self._guarded_body(node, after)
        else:
            first = self._start_guarded()
            self.body(node.body)
            self._exceptions(first, self.b.handlers[-1])
            self._finish(after)
        if cleanup is not None:
            self.b.cleanups.pop()
            self.b.handlers.pop()
            reachable = self.b.arrives(after)
            self.b.begin(failing, reachable=self.b.arrives(failing))
            cleanup()
            self.b.go("raise", outer)
            self.b.begin(after, reachable=reachable)
            cleanup()
            joined = self.b.block()
            self.b.go("next", joined)
            self.b.begin(joined, reachable=self.b.reachable)
        else:
            self.b.begin(after, reachable=self.b.arrives(after))

    def _guarded_body(self, node: cst.Try | cst.TryStar, after: int) -> None:
        """The body, its handlers in order, and the `else` part."""
        dispatch = self.b.block()
        self.b.handlers.append(dispatch)
        first = self._start_guarded()
        self.body(node.body)
        self._exceptions(first, dispatch)
        self.b.handlers.pop()
        if node.orelse is not None:
            self.body(node.orelse.body)
        self._finish(after)
        self.b.begin(dispatch, reachable=self.b.arrives(dispatch))
        open_end = self.b.reachable
        for handler in node.handlers:
            caught = self.b.block()
            kind = self.value(handler.type) if handler.type is not None else None
            exception = self.b.emit(Caught(kind), self.span(handler))
            self.b.function.blocks[self.b.current].test = exception
            self.b.go("except", caught)
            otherwise = self.b.block()
            if kind is not None:
                self.b.go("false", otherwise)
            self.b.begin(caught, reachable=open_end)
            if handler.name is not None:
                self.assign(handler.name.name, exception)
            self.body(handler.body)
            self._finish(after)
            self.b.begin(otherwise, reachable=open_end and kind is not None)
        self.b.go("raise", self.b.handlers[-1])

    def _start_guarded(self) -> int:
        """Begin a block at the start of a `try` body, so that exceptions lead from the body alone."""
        block = self.b.block()
        self.b.go("next", block)
        self.b.begin(block, reachable=self.b.reachable)
        return block

    def _exceptions(self, first: int, target: int) -> None:
        """Anything in the blocks since ``first`` that calls may end at ``target``."""
        operations = self.b.function.operations
        for number in range(first, len(self.b.function.blocks)):
            block = self.b.function.blocks[number]
            quiet = all(isinstance(operations[o], (Const, Load, Store, Return)) for o in block.operations)
            if not quiet and (block.edges or number == self.b.current):
                self.b.edge(number, "except", target)

    def _finish(self, after: int) -> None:
        self.b.go("next", after)
        self.b.dead()

    def with_(self, node: cst.With) -> None:
        managers: list[ValueId] = []
        for item in node.items:
            manager = self.value(item.item)
            entered = self.b.emit(Enter(manager), self.span(item.item))
            if item.asname is not None:
                self.assign(item.asname.name, entered)
            managers.append(manager)
            self.b.cleanups.append(self._leaving(manager, item.item))
        self.body(node.body)
        for manager, item in zip(reversed(managers), reversed(node.items), strict=True):
            self.b.cleanups.pop()
            if self.b.reachable:
                self.b.emit(Leave(manager), self.span(item.item))

    def _leaving(self, manager: ValueId, node: cst.CSTNode) -> Callable[[], None]:
        return lambda: void(self.b.emit(Leave(manager), self.span(node)))

    # -- match

    def match(self, node: cst.Match) -> None:
        subject = self.value(node.subject)
        after = self.b.block()
        for case in node.cases:
            values: list[ValueId] = []
            names: list[cst.Name] = []
            irrefutable = self._pattern(case.pattern, values, names)
            span = self.span(case.pattern)
            fits = self.b.emit(Matches(subject, tuple(values), irrefutable), span)
            reachable = self.b.reachable
            if irrefutable:
                no = self.b.block()
            else:
                yes, no = self.b.test(fits)
                self.b.begin(yes, reachable=reachable)
            for name in names:
                self.b.store(name.value, self.b.emit(Captured(subject), self.span(name)), self.span(name))
            if case.guard is not None:
                inner, refused = self.b.test(self.value(case.guard))
                if reachable:
                    self.b.edge(refused, "next", no)
                self.b.begin(inner, reachable=reachable)
            self.body(case.body)
            self.b.go("next", after)
            self.b.begin(no, reachable=self.b.arrives(no))
        self.b.go("next", after)
        self.b.begin(after, reachable=self.b.arrives(after))

    def _pattern(self, pattern: cst.CSTNode, values: list[ValueId], names: list[cst.Name]) -> bool:  # noqa: C901
        """Collect what a pattern compares with and binds; True if it fits anything."""
        if isinstance(pattern, cst.MatchAs):
            if pattern.name is not None:
                names.append(pattern.name)
            return pattern.pattern is None or self._pattern(pattern.pattern, values, names)
        if isinstance(pattern, (cst.MatchValue, cst.MatchSingleton)):
            values.append(self.value(pattern.value))
        elif isinstance(pattern, cst.MatchClass):
            values.append(self.value(pattern.cls))
            for part in pattern.patterns:
                self._pattern(part.value, values, names)
            for keyword in pattern.kwds:
                self._pattern(keyword.pattern, values, names)
        elif isinstance(pattern, cst.MatchMapping):
            for element in pattern.elements:
                values.append(self.value(element.key))
                self._pattern(element.pattern, values, names)
            if pattern.rest is not None:
                names.append(pattern.rest)
        elif isinstance(pattern, cst.MatchOr):
            for alternative in pattern.patterns:
                self._pattern(alternative.pattern, values, names)
        elif isinstance(pattern, cst.MatchSequence):
            for item in pattern.patterns:
                if isinstance(item, cst.MatchStar):
                    if item.name is not None:
                        names.append(item.name)
                else:
                    self._pattern(item.value, values, names)
        return False

    # -- definitions

    def def_(self, node: cst.FunctionDef) -> None:
        decorators = [(self.value(d.decorator), self.span(d.decorator)) for d in node.decorators]
        value = self.module.function(self, node)
        self._decorate(node.name, value, decorators)

    def class_(self, node: cst.ClassDef) -> None:
        decorators = [(self.value(d.decorator), self.span(d.decorator)) for d in node.decorators]
        bases = tuple(self.value(arg.value) for arg in node.bases if not arg.star)
        keywords = self.arguments(node.keywords)
        value = self.module.class_(self, node, bases, keywords)
        self._decorate(node.name, value, decorators)

    def _decorate(self, name: cst.Name, value: ValueId, decorators: list[tuple[ValueId, tuple[int, int]]]) -> None:
        for decorator, span in reversed(decorators):
            value = self.b.emit(Call(decorator, (Argument(value),), decorator=True), span)
        self.b.store(name.value, value, self.span(name))


def void(_: object) -> None:
    """Evaluate for effect only."""


def _dotted(node: cst.BaseExpression | cst.Name | cst.Attribute) -> str:
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if isinstance(node, cst.Name):
        parts.append(node.value)
    return ".".join(reversed(parts))
