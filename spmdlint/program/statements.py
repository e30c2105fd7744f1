"""Lowers statements: branches, loops, `try`, `with` and `match` become blocks and edges."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from spmdlint.program import namedtuples
from spmdlint.program.builder import Loop
from spmdlint.program.expressions import OPERATORS
from spmdlint.program.layout import Span
from spmdlint.program.patterns import Bound, Patterns
from spmdlint.program.strings import is_one
from spmdlint.program.summary import (
    FAILURE,
    Argument,
    Binary,
    Call,
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

_EXITS = frozenset(("exit", "quit"))
_EXITING = frozenset((("sys", "exit"), ("os", "_exit")))


class Statements(Patterns):
    """One method per kind of statement, chosen by the node's class."""

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Lower the statements of a suite in order."""
        for statement in statements:
            method = BY_STATEMENT.get(type(statement))
            if method is not None:
                method(self, statement)

    # -- simple statements

    def expression(self, node: ast.Expr) -> None:
        value = node.value
        is_string = isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes))
        if is_string and is_one(self.positions.text, self.span(value)):  # a docstring has no effect
            return
        made = self.value(value)
        if isinstance(value, ast.Call) and _ends_process(value):
            self.b.emit(Raise(made), self.span(value))
            self.b.leave("raise", FAILURE)  # no exception handler stops it

    def assignment(self, node: ast.Assign) -> None:
        record = namedtuples.made_by(node)
        if record is not None:
            span = self.span(node.targets[0])
            made = self.module.class_(self, record, span, tuple([self.value(base) for base in record.bases]), ())
            self.b.store(record.name, made, span)
            return
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        annotation = self.value(node.annotation)
        if node.value is not None:
            self.assign(node.target, self.value(node.value), annotation)
        elif isinstance(node.target, ast.Name):
            self.b.emit(Declare(node.target.id, annotation), self.span(node.target))

    def augmented(self, node: ast.AugAssign) -> None:
        left = self.value(node.target)
        right = self.value(node.value)
        operator = OPERATORS[type(node.op)]
        self.assign(node.target, self.b.emit(Binary(operator, left, right, inplace=True), self.span(node)))

    def return_(self, node: ast.Return) -> None:
        value = self.value(node.value) if node.value is not None else None
        self.b.emit(Return(value), self.span(node))
        self.b.leave_function()

    def raise_(self, node: ast.Raise) -> None:
        exception = self.value(node.exc) if node.exc is not None else None
        self.b.emit(Raise(exception), self.span(node))
        self.b.throw()

    def assert_(self, node: ast.Assert) -> None:
        yes, no = self.b.test(self.value(node.test))
        reachable = self.b.reachable
        self.b.begin(no, reachable=reachable)
        message = self.value(node.msg) if node.msg is not None else None
        self.b.emit(Raise(message), self.span(node))
        self.b.throw()
        self.b.begin(yes, reachable=reachable)

    def delete(self, node: ast.Delete) -> None:
        targets = node.targets
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple):
            targets = targets[0].elts
        for target in targets:
            if isinstance(target, ast.Name):
                self.b.emit(Delete(self.b.renamed(target.id)), self.span(target))
            elif isinstance(target, ast.Attribute):
                self.b.emit(Delete(None, self.value(target.value)), self.span(target))
            elif isinstance(target, ast.Subscript):
                self.b.emit(Delete(None, self.value(target.value), self.value(target.slice)), self.span(target))

    def break_(self, node: ast.Break) -> None:
        if self.b.loops:
            loop = self.b.loops[-1]
            self.b.leave("break", loop.after, loop.cleanups)

    def continue_(self, node: ast.Continue) -> None:
        if self.b.loops:
            loop = self.b.loops[-1]
            self.b.leave("continue", loop.header, loop.cleanups)

    # -- imports

    def import_(self, node: ast.Import) -> None:
        for alias in node.names:
            span = self.span(alias)
            if alias.asname is not None:
                self._import_as(alias, Import(alias.name))
            else:
                value = self.b.emit(Import(alias.name, root=True), span)
                self.b.store(alias.name.split(".")[0], value, span)

    def import_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                self.b.emit(ImportStar(module, node.level), self.span(node))
            elif alias.asname is not None:
                self._import_as(alias, Import(module, node.level, alias.name))
            else:
                span = self.span(alias)
                self.b.store(alias.name, self.b.emit(Import(module, node.level, alias.name), span), span)

    def _import_as(self, alias: ast.alias, operation: Import) -> None:
        start, end = self.span(alias)
        name = alias.asname or alias.name
        self.b.store(name, self.b.emit(operation, (start, end)), (end - len(name), end))

    # -- branches and loops

    def if_(self, node: ast.If) -> None:
        yes, no = self.b.test(self.value(node.test))
        reachable = self.b.reachable
        after = self.b.block()
        self.b.begin(yes, reachable=reachable)
        self.body(node.body)
        joined = self.b.reachable
        self.b.go("next", after)
        self.b.begin(no, reachable=reachable)
        self.body(node.orelse)
        self.b.go("next", after)
        self.b.begin(after, reachable=joined or self.b.reachable)

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        iterable = self.value(node.iter)
        header, body, orelse, after = (self.b.block() for _ in range(4))
        self.b.go("next", header)
        reachable = self.b.reachable
        self.b.begin(header, reachable=reachable)
        element = self.b.emit(Next(iterable, isinstance(node, ast.AsyncFor)), self.bare(node.target))
        self.b.function.blocks[header].test = element
        self.b.go("iterate", body)
        self.b.go("exhausted", orelse)
        self.b.begin(body, reachable=reachable)
        self.assign(node.target, element)
        self._loop_body(node.body, header, after)
        self.b.begin(orelse, reachable=reachable)
        self.body(node.orelse)
        self.b.go("next", after)
        self.b.begin(after, reachable=reachable)

    def while_(self, node: ast.While) -> None:
        header, after = self.b.block(), self.b.block()
        self.b.go("next", header)
        reachable = self.b.reachable
        self.b.begin(header, reachable=reachable)
        value = self.value(node.test)
        if self._always(value):
            # `while True:` ends only by break, return or an exception.
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
        self.body(node.orelse)
        self.b.go("next", after)
        self.b.begin(after, reachable=reachable)

    def _loop_body(self, body: Sequence[ast.stmt], header: int, after: int) -> None:
        self.b.loops.append(Loop(header, after, len(self.b.cleanups)))
        self.body(body)
        self.b.go("back", header)
        self.b.loops.pop()

    def _always(self, value: ValueId) -> bool:
        operation = self.b.function.operations[value]
        return isinstance(operation, Const) and bool(operation.value)

    # -- exceptions and context managers

    def try_(self, node: ast.Try) -> None:
        outer = self.b.handlers[-1]
        after = self.b.block()
        cleanup: Callable[[], None] | None = None
        if node.finalbody:
            final_body = node.finalbody
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

    def _guarded_body(self, node: ast.Try, after: int) -> None:
        """The body, its handlers in order, and the `else` part."""
        dispatch = self.b.block()
        self.b.handlers.append(dispatch)
        first = self._start_guarded()
        self.body(node.body)
        self._exceptions(first, dispatch)
        self.b.handlers.pop()
        self.body(node.orelse)
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
                self.b.store(handler.name, exception, self._name_of_caught(handler, handler.name))
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
        """Add exception edges to ``target`` from every block since ``first`` that may raise."""
        operations = self.b.function.operations
        for number in range(first, len(self.b.function.blocks)):
            block = self.b.function.blocks[number]
            quiet = all(isinstance(operations[o], (Const, Load, Store, Return)) for o in block.operations)
            if not quiet and (block.edges or number == self.b.current):
                self.b.edge(number, "except", target)

    def _finish(self, after: int) -> None:
        self.b.go("next", after)
        self.b.dead()

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        suppressing = next((number for number, item in enumerate(node.items) if _suppresses(item)), None)
        if suppressing is not None and isinstance(node, ast.With):
            self._suppressing(node, suppressing)
            return
        managers: list[tuple[ValueId, Span]] = []
        for item in node.items:
            manager = self.value(item.context_expr)
            span = self.bare(item.context_expr)
            entered = self.b.emit(Enter(manager), span)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, entered)
            managers.append((manager, span))
            self.b.cleanups.append(self._leaving(manager, span))
        self.body(node.body)
        for manager, span in reversed(managers):
            self.b.cleanups.pop()
            if self.b.reachable:
                self.b.emit(Leave(manager), span)

    def _suppressing(self, node: ast.With, number: int) -> None:
        """``with contextlib.suppress(Error):`` as the `try` with an empty handler that it stands for."""
        asked = node.items[number].context_expr
        assert isinstance(asked, ast.Call)
        first = asked.args[0]
        single = len(asked.args) == 1 and not isinstance(first, ast.Starred)
        kind = first if single else ast.Tuple(asked.args, ast.Load())
        handler = ast.ExceptHandler(kind, None, [ast.copy_location(ast.Pass(), asked)])
        rest = node.items[number + 1 :]
        body: list[ast.stmt] = [ast.copy_location(ast.With(rest, node.body), node)] if rest else node.body
        tried: ast.stmt = ast.Try(body, [ast.copy_location(handler, asked)], [], [])
        if number:
            tried = ast.With(node.items[:number], [ast.copy_location(tried, node)])
        self.body([ast.fix_missing_locations(ast.copy_location(tried, node))])

    def _leaving(self, manager: ValueId, span: Span) -> Callable[[], None]:
        return lambda: void(self.b.emit(Leave(manager), span))

    # -- match

    def match(self, node: ast.Match) -> None:
        subject = self.value(node.subject)
        after = self.b.block()
        for case in node.cases:
            values: list[ValueId] = []
            names: list[Bound] = []
            fits = self.compared(subject, case.pattern)
            irrefutable = fits is None and self.pattern(case.pattern, values, names)
            if fits is None:
                fits = self.b.emit(Matches(subject, tuple(values), irrefutable), self.bare(case.pattern))
            is_whole = isinstance(case.pattern, ast.MatchAs) and irrefutable
            reachable = self.b.reachable
            if irrefutable:
                no = self.b.block()
            else:
                yes, no = self.b.test(fits)
                self.b.begin(yes, reachable=reachable)
            for name, span, place in names:
                self.b.store(name, subject if is_whole else self.captured(subject, place, span), span)
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

    # -- definitions

    def def_(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = [(self.value(d), self.bare(d)) for d in node.decorator_list]
        span = self._name_of(node)
        value = self.module.function(self, node, span)
        self._decorate(node.name, span, value, decorators)

    def class_(self, node: ast.ClassDef) -> None:
        node = namedtuples.derived_from(node)
        decorators = [(self.value(d), self.bare(d)) for d in node.decorator_list]
        bases = tuple([self.value(base) for base in node.bases if not isinstance(base, ast.Starred)])
        keywords = self.arguments((), node.keywords)
        span = self._name_of(node)
        value = self.module.class_(self, node, span, bases, keywords)
        self._decorate(node.name, span, value, decorators)

    def _name_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Span:
        """The position of a definition's name, which the tree does not give."""
        return self.behind(_DEFINED, *self.span(node), node.name)

    def _name_of_caught(self, node: ast.ExceptHandler, name: str) -> Span:
        """The position of the name that a handler binds, which the tree does not give."""
        _, end = self.span(node)
        start = self.span(node)[0] if node.type is None else self.positions.closed(node.type)
        return self.behind(_HANDLED, self.positions.after_space(start), end, name)

    def _decorate(self, name: str, at: Span, value: ValueId, decorators: list[tuple[ValueId, Span]]) -> None:
        for decorator, span in reversed(decorators):
            value = self.b.emit(Call(decorator, (Argument(value),), decorator=True), span)
        self.b.store(name, value, at)


def void(_: object) -> None:
    """Evaluate for effect only."""


def _suppresses(item: ast.withitem) -> bool:
    """Whether a manager is ``contextlib.suppress(Error)``, by its name."""
    call = item.context_expr
    if not isinstance(call, ast.Call) or not call.args:
        return False
    function = call.func
    if isinstance(function, ast.Attribute):
        return (
            function.attr == "suppress" and isinstance(function.value, ast.Name) and function.value.id == "contextlib"
        )
    return isinstance(function, ast.Name) and function.id == "suppress"


# The tokens before names whose position the tree does not give.
_DEFINED = re.compile(r"\b(?:def|class)\b")
_HANDLED = re.compile(r"\bas\b")

BY_STATEMENT: dict[type[ast.AST], Callable[[Any, Any], None]] = {
    ast.Expr: Statements.expression,
    ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.Return: Statements.return_,
    ast.Raise: Statements.raise_,
    ast.Assert: Statements.assert_,
    ast.Delete: Statements.delete,
    ast.Break: Statements.break_,
    ast.Continue: Statements.continue_,
    ast.Import: Statements.import_,
    ast.ImportFrom: Statements.import_from,
    ast.If: Statements.if_,
    ast.For: Statements.for_,
    ast.AsyncFor: Statements.for_,
    ast.While: Statements.while_,
    ast.Try: Statements.try_,
    ast.With: Statements.with_,
    ast.AsyncWith: Statements.with_,
    ast.FunctionDef: Statements.def_,
    ast.AsyncFunctionDef: Statements.def_,
    ast.ClassDef: Statements.class_,
    ast.Match: Statements.match,
}
if sys.version_info >= (3, 11):
    BY_STATEMENT[ast.TryStar] = Statements.try_


def _ends_process(call: ast.Call) -> bool:
    """Whether a call is ``sys.exit(...)``, or one like it, with a literal status.

    A computed status may be that of a script's last line, ``sys.exit(main())``, which no code follows anyway.
    """
    called = call.func
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        ends = (called.value.id, called.attr) in _EXITING
    else:
        ends = isinstance(called, ast.Name) and called.id in _EXITS
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return ends and len(given) < 2 and all(isinstance(n, (ast.Constant, ast.JoinedStr, ast.UnaryOp)) for n in given)
