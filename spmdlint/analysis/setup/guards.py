"""Code whose author asks whether a name exists, or which version of a library runs, or catches the error.

A guard need not be around the code itself: a function is guarded if it is made under a guard, if a decorator asks
(`pytest.mark.skipif(...)`), or if its own file names it under guards only (`shard = _new if NEW else _old`).
"""

from __future__ import annotations

from collections.abc import Callable

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import catches, expects_failure, handles
from spmdlint.analysis.evaluation.values import Frame
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef, Module

_ERRORS = ("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError")
_MISSING = ("ImportError", "ModuleNotFoundError", "AttributeError")
_PROBES = ("hasattr", "getattr", "find_spec", "import_module", "dir", "vars", "signature")
_ASKING = "version"
_LEAVING = frozenset(("skip", "skipTest", "SkipTest", "exit", "fail", "xfail"))
_MARK = "pytestmark"
_DEPTH = 12


class Guards:
    """Which operations are guarded. ``is_there`` tells whether an operation is a name that exists. One per run."""

    def __init__(self, evaluator: Evaluator, is_there: Callable[[Frame, int], bool]) -> None:
        self.ev = evaluator
        self.is_there = is_there
        self._blocks: dict[FunctionRef, set[int]] = {}
        self._whole: dict[FunctionRef, bool] = {}

    def guard(self, frame: Frame, number: int) -> bool:
        """Whether an operation runs only if its author has asked, or may fail without harm."""
        return self._here(frame, number) or self._function(frame.ref)

    def _here(self, frame: Frame, number: int) -> bool:
        if self.ev.function(frame).block_of[number] in self._asked(frame) or self._chosen(frame, number):
            return True
        return handles(self.ev, frame, number, *_ERRORS) or expects_failure(self.ev, frame, number)

    def _function(self, ref: FunctionRef) -> bool:
        """Whether a function, or one around it, is only made or used under a guard."""
        if ref not in self._whole:
            self._whole[ref] = False  # a function that names itself
            self._whole[ref] = self._find_function(ref)
        return self._whole[ref]

    def _find_function(self, ref: FunctionRef) -> bool:
        function = self.ev.project.function(ref)
        if function.parent is None:
            return self._stored(ref, _MARK, _DEPTH)
        outer = self.ev.free_frame(FunctionRef(ref.path, function.parent))
        made = [n for n, each in enumerate(self.ev.function(outer).operations) if _makes(each, function)]
        if made and all(self._here(outer, number) for number in made):
            return True
        if any(self._asks(outer, call.function) for call in outer.code.decorators.get(ref.index, ())):
            return True
        return self._named_under_guards(ref, function) or self._function(outer.ref)

    def _named_under_guards(self, ref: FunctionRef, function: s.Function) -> bool:
        if function.kind not in ("function", "class"):
            return False
        named = False
        for index, _ in enumerate(self.ev.project.modules[ref.path].summary.functions):
            frame = self.ev.free_frame(FunctionRef(ref.path, index))
            for number in frame.code.loads.get(function.name, ()):
                named = True
                if not self._here(frame, number):
                    return False
        return named

    # -- guards in the same function

    def _chosen(self, frame: Frame, number: int) -> bool:
        """Whether an operation is an arm of a conditional expression that tests for it."""
        function = self.ev.function(frame)
        for other in range(number + 1, len(function.operations)):
            operation = function.operations[other]
            if isinstance(operation, (s.IfExp, s.BoolOp)):
                test = operation.test if isinstance(operation, s.IfExp) else operation.operands[0]
                if function.holds(other, number) and self._asks(frame, test):
                    return True
        return False

    def _asked(self, frame: Frame) -> set[int]:
        """The blocks that a test for a version, or for whether a name exists, guards."""
        if frame.ref not in self._blocks:
            self._blocks[frame.ref] = self._find_asked(frame)
        return self._blocks[frame.ref]

    def _find_asked(self, frame: Frame) -> set[int]:
        function = self.ev.function(frame)
        flow = self.ev.flow(frame.ref)
        leaving = {function.block_of[number] for number in frame.code.calls_named(_LEAVING)}
        found: set[int] = set()
        for number, block in enumerate(function.blocks):
            arms = [edge.target for edge in block.edges if edge.kind in ("true", "false")]
            if block.test is not None and len(arms) == 2 and self._asks(frame, block.test):
                # If one arm leaves, the code after it is the other arm.
                joins = flow.joins_at(number)
                for arm, other in (arms, arms[::-1]):
                    inside = flow.reachable(arm, without=joins)
                    found |= inside
                    if joins not in flow.reachable(arm) or leaving & inside:
                        found |= flow.reachable(other)
        return found | self._fallbacks(frame)

    def _fallbacks(self, frame: Frame) -> set[int]:
        """The blocks that run if a name that exists now did not exist: handlers of a `try` that uses it."""
        function = self.ev.function(frame)
        flow = self.ev.flow(frame.ref)
        found: set[int] = set()
        for tried, block in enumerate(function.blocks):
            if not any(self.is_there(frame, n) for n in block.operations):
                continue
            pending = [edge.target for edge in block.edges if edge.kind == "except"]
            while pending:
                clause = pending.pop()
                test = function.blocks[clause].test
                caught = function.operations[test] if test is not None else None
                if not isinstance(caught, s.Caught):
                    continue
                kinds = self.ev.value(frame, caught.kind) if caught.kind is not None else frozenset()
                for edge in function.blocks[clause].edges:
                    if edge.kind == "false":
                        pending.append(edge.target)
                    elif edge.kind == "except" and catches(kinds, {f"builtins.{name}" for name in _ERRORS}):
                        found |= flow.reachable(edge.target, without=flow.joins_at(tried))
        return found

    # -- tests

    def _asks(self, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
        """Whether a value is the answer to such a question, also if a different file of the project has asked it."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        if depth == 0:
            return False
        if isinstance(operation, s.Load):
            if _ASKING in operation.name.lower() or operation.name in _PROBES:
                return True
            scope = frame.code.scope_of(operation.name) or self.ev.project.modules[frame.ref.path].top
            return self._stored(FunctionRef(frame.ref.path, scope.index), operation.name, depth)
        if isinstance(operation, s.Attribute):
            if _ASKING in operation.name.lower():
                return True
            home = self._module(frame, operation.base)
            if home is not None:
                return self._stored(FunctionRef(home.path, home.top.index), operation.name, depth)
            return self._asks(frame, operation.base, depth - 1)
        if isinstance(operation, s.Import) and operation.name is not None:
            home = self._imported(self.ev.project.modules[frame.ref.path], operation.module, operation.level)
            return home is not None and self._stored(FunctionRef(home.path, home.top.index), operation.name, depth)
        if isinstance(operation, s.MakeFunction):
            made = self.ev.free_frame(FunctionRef(frame.ref.path, operation.function))
            returned = (each for each in self.ev.function(made).operations if isinstance(each, s.Return))
            return any(each.value is not None and self._asks(made, each.value, depth - 1) for each in returned)
        return any(self._asks(frame, n, depth - 1) for n in _inside(operation))

    def _stored(self, scope: FunctionRef, name: str, depth: int) -> bool:
        """Whether something that a scope stores in a name asks; a flag that is set in a `try` answers as well."""
        where = self.ev.free_frame(scope)
        function = self.ev.function(where)
        for number in function.stores.get(name, ()):
            store = function.operations[number]
            flag = isinstance(store, s.Store) and isinstance(function.operations[store.value], s.Const)
            if self._asks(where, number, depth - 1) or (flag and handles(self.ev, where, number, *_MISSING)):
                return True
        return False

    def _module(self, frame: Frame, number: int) -> Module | None:
        """The module of the project that a value is."""
        operation = self.ev.function(frame).operations[number]
        if not isinstance(operation, s.Load):
            return None
        module = self.ev.project.modules[frame.ref.path]
        scope = frame.code.scope_of(operation.name) or module.top
        for store in scope.stores.get(operation.name, ()):
            stored = scope.operations[store]
            imported = scope.operations[stored.value] if isinstance(stored, s.Store) else None
            if isinstance(imported, s.Import):
                home = self._imported(module, module_of(imported), imported.level)
                if home is not None:
                    return home
        return None

    def _imported(self, module: Module, name: str, level: int) -> Module | None:
        """The module of the project that a possibly relative name in another one means."""
        path = self.ev.project.find_module(self.ev.project.absolute(module, name, level), module)
        return self.ev.project.modules[path] if path is not None else None


def module_of(operation: s.Import) -> str:
    """The module that an import binds, if it binds one."""
    if operation.name is None:
        return operation.module
    return f"{operation.module}.{operation.name}" if operation.module else operation.name


def _makes(operation: s.Operation, function: s.Function) -> bool:
    if isinstance(operation, s.MakeFunction):
        return operation.function == function.index
    return isinstance(operation, s.MakeClass) and operation.body == function.index


def _inside(operation: s.Operation) -> tuple[int, ...]:
    """The values that a test is made of."""
    if isinstance(operation, s.Compare):
        return operation.operands
    if isinstance(operation, s.BoolOp):
        return operation.operands
    if isinstance(operation, s.Unary):
        return (operation.operand,)
    if isinstance(operation, s.Store):
        return (operation.value,)
    if isinstance(operation, s.Call):
        return (operation.function, *(argument.value for argument in operation.arguments))
    if isinstance(operation, s.Subscript):
        return (operation.base,)
    if isinstance(operation, s.Matches):
        return (operation.subject,)
    if isinstance(operation, s.Display):
        return operation.elements
    return ()
