"""Uses of names and parameters that the configured version of a library does not have.

The evaluator knows each name by one canonical form, whichever was written; here the spelling matters, so names are
followed from the imports of their own file, and no further.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.several import for_one_alone
from spmdlint.analysis.evaluation.values import Frame, Site
from spmdlint.analysis.setup.guards import Guards
from spmdlint.knowledge.changes import Change, Changes
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef
from spmdlint.releases import Releases

_NAMES: tuple[type[s.Operation], ...] = (s.Import, s.Attribute, s.Call)

_DEPTH = 6


class UseOfAbsent(Struct, frozen=True):
    """A name or parameter that is absent, and where it is used. ``in_place``: ``use`` can be written over it."""

    site: Site
    written: str
    change: Change
    parameter_of: str = ""
    in_place: bool = False


class AbsentNames:
    """Finds such uses in the files of a project."""

    def __init__(self, evaluator: Evaluator, tables: tuple[Changes, ...], releases: Releases) -> None:
        self.ev = evaluator
        self.tables = tables
        self.releases = releases
        self.guards = Guards(evaluator, self._is_there)
        self.last_parts = frozenset[str]().union(*(table.last_parts for table in tables))
        self.parameter_names = frozenset[str]().union(*(table.parameter_names for table in tables))

    def uses(self) -> Iterator[UseOfAbsent]:
        """Every use that certainly fails: not where its author tests for the version, or catches the error."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame) | for_one_alone(self.ev, frame)
            for block, number, _ in frame.code.each(_NAMES):
                for found in self._at(frame, number) if block in live else ():
                    if not self.guards.guard(frame, number) and not self._is_hint(frame, number):
                        yield found

    def _at(self, frame: Frame, number: int) -> Iterator[UseOfAbsent]:
        function = self.ev.function(frame)
        operation = function.operations[number]
        if isinstance(operation, s.Import):
            written = self._imported(frame, operation)
            change = self._absent(written)
            if change is not None:
                yield UseOfAbsent(Site(frame.ref, number), written, change)
        elif isinstance(operation, s.Attribute) and operation.name in self.last_parts:
            base = self.written(frame, operation.base)
            change = self._absent(f"{base}.{operation.name}") if base and self._absent(base) is None else None
            if change is not None:
                root = function.operations[self._root(function, number)]
                spelled = isinstance(root, s.Load) and root.name == "jax"
                written = f"{base}.{operation.name}"
                in_place = change.same and change.name == written and spelled
                yield UseOfAbsent(Site(frame.ref, number), written, change, in_place=in_place)
        elif isinstance(operation, s.Call):
            yield from self._parameters(frame, number, operation)

    def _parameters(self, frame: Frame, number: int, operation: s.Call) -> Iterator[UseOfAbsent]:
        if self.parameter_names.isdisjoint(argument.keyword for argument in operation.arguments):
            return
        callee = self.written(frame, operation.function)
        passed = operation.arguments
        known = self.ev.knowledge.get(callee)
        if known is not None and known.kind == "currying" and passed:
            callee = self.written(frame, passed[0].value)
        if not callee or self._absent(callee) is not None:
            return
        for argument in passed:
            changes = (table.parameters.get(callee, {}).get(argument.keyword or "") for table in self.tables)
            change = next((each for each in changes if each is not None and each.absent(self.releases)), None)
            if change is not None:
                yield UseOfAbsent(Site(frame.ref, number), change.name, change, parameter_of=callee)

    def _absent(self, written: str) -> Change | None:
        found = (table.name(written) for table in self.tables) if written else ()
        change = next((each for each in found if each is not None and each.absent(self.releases)), None)
        return None if change is not None and self._provided(change.name) else change

    def _provided(self, dotted: str) -> bool:
        """Whether the project itself sets the name where it is missing: `jax.shard_map = compat.shard_map`."""
        home, _, name = dotted.rpartition(".")
        setting = self.ev.project.attributes_set.get(name, ())
        return any(self.written(self.ev.free_frame(ref), number) == home for ref, number in setting)

    def _is_there(self, frame: Frame, number: int) -> bool:
        """Whether an operation is a name of JAX that the configured version has."""
        operation = self.ev.function(frame).operations[number]
        if not isinstance(operation, (s.Import, s.Attribute)):
            return False
        written = self.written(frame, number)
        return written.startswith("jax.") and self._absent(written) is None

    def _is_hint(self, frame: Frame, number: int) -> bool:
        """Whether an operation is in an annotation that is never evaluated."""
        function = self.ev.function(frame)
        if function.kind != "function" and not self._postpones(frame):
            return False
        for operation in function.operations:
            for annotation in _annotations(operation) if self._postpones(frame) else _local(operation):
                if annotation == number or function.holds(annotation, number):
                    return True
        return False

    def _postpones(self, frame: Frame) -> bool:
        """Whether the file has `from __future__ import annotations`."""
        top = self.ev.project.modules[frame.ref.path].top
        return any(
            isinstance(each, s.Import) and (each.module, each.name) == ("__future__", "annotations")
            for each in top.operations
        )

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
        scope = frame.code.scope_of(name) or module.top
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


def _annotations(operation: s.Operation) -> Iterator[int]:
    if isinstance(operation, s.MakeFunction):
        yield from (number for _, number in operation.annotations)
    yield from _local(operation)


def _local(operation: s.Operation) -> Iterator[int]:
    """The annotations of variables: those of a function's own are never evaluated."""
    if isinstance(operation, (s.Store, s.Declare)) and operation.annotation is not None:
        yield operation.annotation
