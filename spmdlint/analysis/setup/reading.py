"""Where the host reads a whole array that no single process holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import expects_failure, handles
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    Collection,
    Constant,
    DictionaryValue,
    External,
    Frame,
    Free,
    Member,
    Site,
    Value,
    Values,
    certain,
    constant,
    element_at,
)
from spmdlint.analysis.meshtypes.specs import names_of
from spmdlint.analysis.setup.addressable import said_to_span
from spmdlint.analysis.setup.onearm import plain_for_one_process
from spmdlint.analysis.setup.reshaped import reshaped_as_before
from spmdlint.analysis.variance.control import Control
from spmdlint.analysis.variance.windows import resolved
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.reading import Reading
from spmdlint.program import summary as s

_TAKES: tuple[type[s.Operation], ...] = (s.Next, s.Call)

_DEPTH = 8
_MESH = "mesh"


class WholeRead(Struct, frozen=True):
    """A read of an array that spans processes: the site, the reader, and where the array is made.

    Without ``axes``, ``made`` is a condition that says that the array spans processes, or, if it is ``reshaped``, the
    operation that gives the array its old shape, or, if it is ``plain``, its use as it is where there is one process.
    """

    site: Site
    reader: str
    made: Site
    axes: tuple[str, ...]
    reshaped: bool = False
    plain: bool = False


class Reads:
    """Finds such reads outside traced code, in files that are written for several processes."""

    def __init__(self, evaluator: Evaluator, reach: Reach, multi: MultiProcess, known: Reading) -> None:
        self.ev = evaluator
        self.reach = reach
        self.multi = multi
        self.known = known
        self._control = Control(evaluator)

    def found(self) -> Iterator[WholeRead]:
        """Every read that certainly raises."""
        for ref in self.ev.project.functions():
            if ref in self.reach.traced or not self.multi.written_for(ref.path):
                continue
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            for block, number, _ in frame.code.each(_TAKES):
                if block in live:
                    yield from self._at(frame, number)

    def untiled(self) -> Iterator[WholeRead]:
        """Every gathering of such an array that stacks the parts of the processes, in any file."""
        for ref in self.reach.calling(self.known.gatherers):
            frame = self.ev.free_frame(ref)
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                if call.arguments:
                    yield from self._untiled(frame, number, call)

    def _untiled(self, frame: Frame, number: int, call: s.Call) -> Iterator[WholeRead]:
        callee = certain(self.ev.value(frame, call.function))
        tiled = self.known.gatherers.get(callee.name) if isinstance(callee, External) else None
        knowledge = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if tiled is None or knowledge is None or expects_failure(self.ev, frame, number):
            return
        if any(argument.star for argument in call.arguments):
            return
        given = passed(call, tiled, knowledge.positional)
        said = constant(self.ev.value(frame, given)) if given is not None else Constant(False)
        if said is None or said.value:
            return
        for each in (frame, *(other for other in self.reach.frames if other.ref == frame.ref)):
            array = certain(self.ev.value(each, call.arguments[0].value))
            spans = self._spans(array) if array is not None else None
            spans = spans or self._one_of_results(each, call.arguments[0].value)
            if spans is not None:
                made, axes = spans
                yield WholeRead(Site(frame.ref, number), knowledge.name.rpartition(".")[2], made, tuple(sorted(axes)))
                return
        condition = said_to_span(self.ev, self._control, frame, call.arguments[0].value)
        reader = knowledge.name.rpartition(".")[2]
        if condition is not None:
            yield WholeRead(Site(frame.ref, number), reader, condition, ())
            return
        reshaped = reshaped_as_before(self.ev, frame, number, call)
        if reshaped is not None:
            yield WholeRead(Site(frame.ref, number), reader, Site(frame.ref, reshaped), (), reshaped=True)
            return
        plain = plain_for_one_process(self.ev, self._control, frame, number, call, self.known.states)
        if plain is not None:
            yield WholeRead(Site(frame.ref, number), reader, Site(frame.ref, plain), (), plain=True)

    def _at(self, frame: Frame, number: int) -> Iterator[WholeRead]:
        read = self._read(frame, number)
        if read is None:
            return
        reader, values = read
        array = certain(values)
        spans = self._spans(array) if array is not None else None
        if spans is None or expects_failure(self.ev, frame, number) or handles(self.ev, frame, number, "RuntimeError"):
            return
        made, axes = spans
        yield WholeRead(Site(frame.ref, number), reader, made, tuple(sorted(axes)))

    def _read(self, frame: Frame, number: int) -> tuple[str, Values] | None:
        """The description of how an operation reads a value, and the value."""
        function = self.ev.function(frame)
        operation = function.operations[number]
        if isinstance(operation, s.Next):
            return "a loop over it", self.ev.value(frame, operation.iterable)
        if not isinstance(operation, s.Call):
            return None
        callee = certain(self.ev.value(frame, operation.function))
        if isinstance(callee, External) and self.known.reads(callee.name) and operation.arguments:
            return callee.name, self.ev.value(frame, operation.arguments[0].value)
        method = function.operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in self.known.methods:
            return f".{method.name}()", self.ev.value(frame, method.base)
        return None

    # -- arrays

    def spans(self, values: Values) -> bool:
        """Whether an array certainly has parts on several processes."""
        array = certain(values)
        return array is not None and self._spans(array) is not None

    def _spans(self, array: Value) -> tuple[Site, frozenset[str]] | None:
        """Where an array that certainly spans several processes is made, and the axes along which it is split."""
        if isinstance(array, Applied):
            maker = self.known.makers.get(array.name)
            if maker is not None:
                axes = self._cut(self._argument(array, *maker))
                return (array.site, axes) if axes else None
            positions = self.known.from_mesh.get(array.name)
            if positions is not None and self._over_all(self._argument(array, "", positions[0])):
                spec = certain(self._argument(array, "", positions[1]))
                named = names_of(self.ev, spec)
                return (array.site, named) if named else None
        if isinstance(array, Called) and isinstance(array.function, Applied):
            axes = self._of_result(array.function)
            return (array.site, axes) if axes else None
        return None

    def _one_of_results(self, frame: Frame, number: int) -> tuple[Site, frozenset[str]] | None:
        """The same for one of several results of a jit: ``losses, steps = eval_step(...)``."""
        item = frame.code.operations[resolved(self.ev, frame, number)]
        if not isinstance(item, s.Item) or item.star:
            return None
        called = certain(self.ev.value(frame, item.value))
        if not isinstance(called, Called) or not isinstance(called.function, Applied):
            return None
        axes = self._of_result(called.function, item.index)
        return (called.site, axes) if axes else None

    def _of_result(self, function: Applied, index: int | None = None) -> frozenset[str] | None:
        """The axes along which the single result of a jit or map, or one of several results of a jit, is split."""
        known = self.ev.knowledge.get(function.name)
        if known is None:
            return None
        if known.kind == "jit":
            given = self.ev.argument(function, "out_shardings")
            several = certain(given) if given is not None else None
            if index is not None and isinstance(several, Collection):
                given = element_at(several, index)
            return self._cut(given) if given is not None else None
        if index is not None:
            return None
        if known.kind == "map" and known.mesh is not None and "out_specs" in known.specs:
            mesh, spec = (self.ev.argument(function, name) for name in (known.mesh, "out_specs"))
            if mesh is not None and spec is not None and self._over_all(mesh):
                return names_of(self.ev, certain(spec))
        return None

    @staticmethod
    def _argument(applied: Applied, keyword: str, position: int) -> Values:
        found = applied.arguments.keyword(keyword)
        if found is not None:
            return found
        positional = applied.arguments.positional
        return positional[position] if position < len(positional) else frozenset()

    def _cut(self, shardings: Values) -> frozenset[str] | None:
        """The axes along which a sharding over the devices of all processes splits an array."""
        sharding = certain(shardings)
        known = self.ev.knowledge.get(sharding.name) if isinstance(sharding, Applied) else None
        if known is None or known.kind != "sharding" or known.mesh is None or not isinstance(sharding, Applied):
            return None
        mesh, spec = (self.ev.argument(sharding, name) for name in (known.mesh, known.specs[0]))
        if mesh is None or spec is None or not self._over_all(mesh):
            return None
        return names_of(self.ev, certain(spec))

    def _over_all(self, meshes: Values) -> bool:
        """Whether a mesh is certainly made of the devices of all processes."""
        mesh = certain(meshes)
        if isinstance(mesh, Free):
            return mesh.name == _MESH and mesh.ref.path in self._gathering
        if not isinstance(mesh, Applied):
            return False
        made_of = list(self._inside(mesh, _DEPTH))
        if any(name in self.known.local for name in made_of):
            return False
        given = mesh.arguments.keyword("devices")
        by_default = mesh.name in self.known.over_all and given is None
        return by_default or any(name in self.known.devices or name in self.known.over_all for name in made_of[1:])

    @cached_property
    def _gathering(self) -> frozenset[Path]:
        """The files that gather from all processes: a mesh passed to their functions is the mesh of the job."""
        return frozenset(ref.path for ref in self.reach.calling(self.known.gatherers))

    def _inside(self, value: Value, depth: int) -> Iterator[str]:
        """The names of the library functions that a value was made with."""
        if depth == 0:
            return
        parts: list[Values] = []
        if isinstance(value, Applied):
            yield value.name
            parts = [*value.arguments.positional, *(each for _, each in value.arguments.keywords)]
            if value.receiver is not None:
                yield from self._inside(value.receiver, depth - 1)
        elif isinstance(value, Called):
            yield from self._inside(value.function, depth - 1)
        elif isinstance(value, Member):
            yield from self._inside(value.base, depth - 1)
        elif isinstance(value, Collection):
            parts = list(value.elements)
        elif isinstance(value, DictionaryValue):
            parts = [each for _, each in value.items]
        for values in parts:
            for part in values:
                yield from self._inside(part, depth - 1)
