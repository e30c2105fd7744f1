"""Batches of a process's own part of the data that are as large as those of all processes together.

A size that is divided by the number of processes somewhere, or tested to be a multiple of it, counts the examples of
all processes. A process that reads its part of the data in batches of that size, undivided, passes on too many examples
by a factor of the number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Instance, Site, certain
from spmdlint.analysis.inputs.quantities import Quantities
from spmdlint.analysis.variance.arguments import argument_for
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.analysis.variance.windows import resolved
from spmdlint.program import summary as s

_BATCHERS = frozenset(("batch",))
_SIZE = "batch_size"
_OWN = ("data", "identity")
_CALLERS = 3
"""How many levels of callers may pass a size on."""
# A value of one function, a field of a class, or a field of what a name refers to in a file.
_Place: TypeAlias = tuple[object, object]


class WholeBatch(Struct, frozen=True):
    """A call that makes batches of a process's part; ``divided`` is where their size is divided."""

    site: Site
    size: str
    divided: Site
    reason: Reason


class WholeBatches:
    """Finds such batches. ``content`` says what is a process's own."""

    def __init__(self, evaluator: Evaluator, quantities: Quantities, content: Origins) -> None:
        self.ev = evaluator
        self.reach = content.reach
        self.quantities = quantities
        self.content = content

    def found(self) -> Iterator[WholeBatch]:
        """Each such call, once."""
        divided = dict(self._divisions())
        for ref in self.ev.project.functions() if divided else ():
            frame = self.ev.free_frame(ref)
            live = self.ev.live_blocks(frame)
            for number, call in frame.code.calls_named(_BATCHERS).items():
                method = frame.code.operations[call.function]
                size = passed(call, _SIZE, (_SIZE,))
                places = self._places(frame, size, _CALLERS) if size is not None else ()
                place = next((each for each in places if each[1] in divided), None)
                if place is None or not isinstance(method, s.Attribute):
                    continue
                reason = self.content.of(frame, method.base)
                if reason is not None and reason.kind in _OWN and frame.code.function.block_of[number] in live:
                    yield WholeBatch(Site(ref, number), place[0], divided[place[1]], reason)

    def _places(self, frame: Frame, number: int, depth: int) -> Iterator[tuple[str, _Place]]:
        """Where a value is kept: here or, if it is a parameter, in the functions that pass it on unchanged."""
        place = self._place(frame, number)
        if place is None:
            return
        yield place
        operation = frame.code.operations[frame.code.root_of(resolved(self.ev, frame, number))]
        edges = self.reach.callers.get(frame.ref, ()) if isinstance(operation, s.Parameter) and depth else ()
        for edge in edges:
            call = edge.caller.code.operations[edge.number]
            if isinstance(operation, s.Parameter) and isinstance(call, s.Call) and edge.target.way == "call":
                given = argument_for(self.ev, frame, operation.name, call, edge.caller)
                if given is not None and given[0] is self.ev.free_frame(given[0].ref):
                    yield from self._places(*given, depth - 1)

    def _divisions(self) -> Iterator[tuple[_Place, Site]]:
        """Each value that is divided by the number of processes, and where."""
        for ref in self.ev.project.functions():
            frame = self.ev.free_frame(ref)
            for number, operation in frame.code.of_kind(s.Binary):
                if operation.operator not in ("//", "%"):
                    continue
                place = self._place(frame, operation.left)
                count = self.quantities.of(frame, operation.right) if place is not None else None
                if place is not None and count is not None and (count.role, count.unit) == ("count", "process"):
                    yield place[1], Site(ref, number)

    def _place(self, frame: Frame, number: int) -> tuple[str, _Place] | None:
        """The name of a value, and where it is kept: as a parameter, or in a field."""
        code = frame.code
        number = code.root_of(resolved(self.ev, frame, number))
        operation = code.operations[number]
        if isinstance(operation, s.Parameter):
            return operation.name, (frame.ref, number)
        if not isinstance(operation, s.Attribute):
            return None
        owner = certain(self.ev.value(frame, operation.base))
        if isinstance(owner, Instance):
            first = self.ev.objects.lineage(owner.cls)[-1]  # whose subclasses share the field
            return operation.name, (first.ref, operation.name)
        base = code.operations[operation.base]
        if not isinstance(base, s.Load):
            return None
        return f"{base.name}.{operation.name}", ((frame.ref.path, base.name), operation.name)
