"""Uses of names and parameters that the configured version of a library does not have.

The evaluator knows each name by one canonical form, whichever was written; here the spelling matters, so names are
followed from the imports of their own file, and no further.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import catches, expects_failure, handles
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.knowledge.removed import Removals, Removed, Version
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_NAMES: tuple[type[s.Operation], ...] = (s.Import, s.Attribute, s.Call)

_ERRORS = ("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError")
_PROBES = ("hasattr", "getattr", "find_spec", "import_module")
_DEPTH = 6


class UseOfRemoved(Struct, frozen=True):
    """A removed name or parameter, and where it is used. ``in_place``: the replacement can be written over it."""

    site: Site
    written: str
    removed: Removed
    parameter_of: str = ""
    in_place: bool = False


class RemovedNames:
    """Finds such uses in the files of a project."""

    def __init__(self, evaluator: Evaluator, removals: Removals, version: Version | None) -> None:
        self.ev = evaluator
        self.removals = removals
        self.version = version

    def uses(self) -> Iterator[UseOfRemoved]:
        """Every use that certainly fails: not where its author tests for the version, or catches the error."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            guarded: set[int] | None = None
            for block, number, _ in frame.code.each(_NAMES):
                for found in self._at(frame, number) if block in live else ():
                    if guarded is None:
                        guarded = self._asked(frame)
                    if block not in guarded and not self._chosen(frame, number) and not self._handled(frame, number):
                        yield found

    def _at(self, frame: Frame, number: int) -> Iterator[UseOfRemoved]:
        function = self.ev.function(frame)
        operation = function.operations[number]
        if isinstance(operation, s.Import):
            written = self._imported(frame, operation)
            removed = self._gone(written)
            if removed is not None:
                yield UseOfRemoved(Site(frame.ref, number), written, removed)
        elif isinstance(operation, s.Attribute) and operation.name in self.removals.last_parts:
            base = self.written(frame, operation.base)
            removed = self._gone(f"{base}.{operation.name}") if base and self._gone(base) is None else None
            if removed is not None:
                root = function.operations[self._root(function, number)]
                spelled = isinstance(root, s.Load) and root.name == "jax"
                written = f"{base}.{operation.name}"
                in_place = removed.same and removed.name == written and spelled
                yield UseOfRemoved(Site(frame.ref, number), written, removed, in_place=in_place)
        elif isinstance(operation, s.Call):
            yield from self._parameters(frame, number, operation)

    def _parameters(self, frame: Frame, number: int, operation: s.Call) -> Iterator[UseOfRemoved]:
        if self.removals.parameter_names.isdisjoint(argument.keyword for argument in operation.arguments):
            return
        callee = self.written(frame, operation.function)
        passed = operation.arguments
        known = self.ev.knowledge.get(callee)
        if known is not None and known.kind == "currying" and passed:
            callee = self.written(frame, passed[0].value)
        table = self.removals.parameters.get(callee, {})
        for argument in passed:
            removed = table.get(argument.keyword or "")
            if removed is not None and removed.gone(self.version):
                yield UseOfRemoved(Site(frame.ref, number), removed.name, removed, parameter_of=callee)

    def _gone(self, written: str) -> Removed | None:
        removed = self.removals.name(written) if written else None
        return removed if removed is not None and removed.gone(self.version) else None

    # -- names as written

    def written(self, frame: Frame, number: int, depth: int = _DEPTH) -> str:
        """The dotted name of a value, by the imports of its file; "" if it has none."""
        if depth == 0:
            return ""
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Import):
            return self._imported(frame, operation)
        if isinstance(operation, s.Attribute):
            base = self.written(frame, operation.base, depth)
            return f"{base}.{operation.name}" if base else ""
        if isinstance(operation, s.Load):
            return self._loaded(frame, operation.name, depth)
        return ""

    def _loaded(self, frame: Frame, name: str, depth: int) -> str:
        module = self.ev.project.modules[frame.ref.path]
        scope = module.summary.scope_of(self.ev.function(frame), name) or module.top
        stores = [scope.operations[n] for n in scope.stores.get(name, ())]
        where = self.ev.free_frame(FunctionRef(frame.ref.path, scope.index))
        found = {self.written(where, store.value, depth - 1) if isinstance(store, s.Store) else "" for store in stores}
        return found.pop() if len(found) == 1 else ""

    def _imported(self, frame: Frame, operation: s.Import) -> str:
        module = self.ev.project.modules[frame.ref.path]
        if operation.level or self.ev.project.find_module(operation.module, module) is not None:
            return ""
        if operation.name is not None:
            return f"{operation.module}.{operation.name}"
        return operation.module.split(".")[0] if operation.root else operation.module

    @staticmethod
    def _root(function: s.Function, number: int) -> int:
        operation = function.operations[number]
        while isinstance(operation, s.Attribute):
            number = operation.base
            operation = function.operations[number]
        return number

    # -- where the author handles it

    def _handled(self, frame: Frame, number: int) -> bool:
        return handles(self.ev, frame, number, *_ERRORS) or expects_failure(self.ev, frame, number)

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
        """The blocks guarded by a test for a version, or for whether a name exists; in enclosing functions as well."""
        function = self.ev.function(frame)
        flow = self.ev.flow(frame.ref)
        found: set[int] = set()
        for number, block in enumerate(function.blocks):
            arms = [edge.target for edge in block.edges if edge.kind in ("true", "false")]
            if block.test is not None and len(arms) == 2 and self._asks(frame, block.test):
                # If one arm leaves, the code after it is the other arm.
                for arm in arms:
                    found |= flow.reachable(arm, without=flow.joins_at(number))
        return found | self._fallbacks(frame)

    def _fallbacks(self, frame: Frame) -> set[int]:
        """The blocks that run if a name that exists now did not exist: handlers of a `try` that uses it."""
        function = self.ev.function(frame)
        flow = self.ev.flow(frame.ref)
        found: set[int] = set()
        for tried, block in enumerate(function.blocks):
            if not any(self._is_there(frame, n) for n in block.operations):
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

    def _is_there(self, frame: Frame, number: int) -> bool:
        """Whether an operation is a name of JAX that the configured version has."""
        operation = self.ev.function(frame).operations[number]
        if not isinstance(operation, (s.Import, s.Attribute)):
            return False
        written = self.written(frame, number)
        return written.startswith("jax.") and self._gone(written) is None

    def _asks(self, frame: Frame, number: int, depth: int = _DEPTH) -> bool:
        function = self.ev.function(frame)
        operation = function.operations[number]
        if depth == 0:
            return False
        if isinstance(operation, s.Load):
            if "version" in operation.name.lower() or operation.name in _PROBES:
                return True
            module = self.ev.project.modules[frame.ref.path]
            scope = module.summary.scope_of(function, operation.name) or module.top
            where = self.ev.free_frame(FunctionRef(frame.ref.path, scope.index))
            return any(self._asks(where, n, depth - 1) for n in scope.stores.get(operation.name, ()))
        if isinstance(operation, s.Attribute):
            return "version" in operation.name.lower() or self._asks(frame, operation.base, depth - 1)
        return any(self._asks(frame, n, depth - 1) for n in _inside(operation))


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
    return ()
