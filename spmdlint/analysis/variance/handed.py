"""Values that the program itself treats as this process's own part: it passes them on to become a global array.

What it draws from an iterator and passes to a map over rows, or counts and gathers from all processes, is most likely
the process's own part as well: nobody gathers what all processes have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spmdlint.analysis.callgraph.statics import static_arguments
from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.code import LINKS
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    ANYTHING,
    Applied,
    Arguments,
    Collection,
    Constant,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
    constant,
    deed,
)
from spmdlint.analysis.variance.madeof import MadeOf
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef


class Handed:
    """Finds elements of loops, and results of ``next``, that end up as one process's part. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._known: dict[FunctionRef, dict[int, Site]] = {}
        self._likely: dict[FunctionRef, dict[int, Site]] = {}
        self._asked: set[FunctionRef] = set()
        self._made = MadeOf(evaluator)

    def likely_part_of(self, frame: Frame, number: int) -> Site | None:
        """The call that makes it likely that the result of an operation is this process's own part."""
        return self._kept(self._likely, self._guess, frame).get(number)

    def _guess(self, frame: Frame) -> Iterator[tuple[int, Site]]:
        function = self.ev.function(frame)
        for number, operation in enumerate(function.operations):
            if not isinstance(operation, s.Call) or not operation.arguments:
                continue
            callee = self.ev.callee(frame, operation)
            known = self.ev.knowledge.get(callee.name) if isinstance(callee, (Applied, External)) else None
            if known is None:
                continue
            if isinstance(callee, Applied) and known.by_hand:
                for value in self._rows(callee, operation):
                    for origin in self._made.parts(frame, value, given=False):
                        yield origin, Site(frame.ref, number)
            elif isinstance(callee, External) and known.gathers:
                counted = self._counted(frame, operation.arguments[0].value)
                if counted is not None:
                    yield counted, Site(frame.ref, number)

    def _rows(self, callee: Applied, operation: s.Call) -> Iterator[int]:
        """The arguments of which a map gives each device a row: not static ones, nor those that all devices get."""
        static = {value for _, value in static_arguments(self.ev, callee, operation, ())}
        axes = certain(self.ev.argument(callee, "in_axes") or ANYTHING)
        axes_of = axes.elements if isinstance(axes, Collection) else ()
        whole = {place for place, values in enumerate(axes_of) if constant(values) == Constant(None)}
        for place, argument in enumerate(operation.arguments):
            if argument.value not in static and (argument.keyword is not None or place not in whole):
                yield argument.value

    def _counted(self, frame: Frame, number: int) -> int | None:
        """The parameter of a function whose length is gathered: ``process_allgather(np.asarray(len(rows)))``."""
        operations = frame.code.operations
        root = operations[frame.code.root_of(number)]
        for _ in LINKS:
            if not isinstance(root, s.Call) or not root.arguments:
                break
            callee = self.ev.callee(frame, root)
            inner = frame.code.root_of(root.arguments[0].value)
            if isinstance(callee, External) and deed(callee) == "length":
                return inner if isinstance(operations[inner], s.Parameter) else None
            root = operations[inner]
        return None

    def part_of(self, frame: Frame, number: int) -> Site | None:
        """The call that takes the result of an operation as this process's part of an array."""
        return self._kept(self._known, self._find, frame).get(number)

    def _kept(
        self,
        kept: dict[FunctionRef, dict[int, Site]],
        find: Callable[[Frame], Iterator[tuple[int, Site]]],
        frame: Frame,
    ) -> dict[int, Site]:
        """What a search finds in a function; each function is searched once."""
        if frame.ref not in kept:
            kept[frame.ref] = dict(find(self.ev.free_frame(frame.ref)))
        return kept[frame.ref]

    def _find(self, frame: Frame) -> Iterator[tuple[int, Site]]:
        function = self.ev.function(frame)
        for number, operation in enumerate(function.operations):
            if not isinstance(operation, s.Call):
                continue
            for value in self._parts(frame, operation):
                for origin in self._made.parts(frame, value, given=True):
                    yield origin, Site(frame.ref, number)

    def _parts(self, frame: Frame, operation: s.Call) -> Iterator[int]:
        """What a call passes as this process's part, to a library or to a function of the project that passes it on."""
        for callee in ordered(self.ev.value(frame, operation.function)):
            if isinstance(callee, FunctionValue):
                function, bound = self.ev.project.function(callee.ref), callee.receiver is not None
                given = (passed_to(function, operation, name, bound=bound) for name in self._handing_on(callee.ref))
                yield from (value for value in given if value is not None)
            else:
                value = self._local(callee, operation)
                if value is not None and not self._is_alike(frame, operation):
                    yield value

    def _handing_on(self, ref: FunctionRef) -> list[str]:
        """The parameters that a function passes on as this process's part."""
        if ref in self._asked:
            return []
        self._asked.add(ref)
        try:
            frame = self.ev.free_frame(ref)
            found = self._kept(self._known, self._find, frame)
        finally:
            self._asked.discard(ref)
        operations = ((number, frame.code.operations[number]) for number in found)
        return [operation.name for _, operation in operations if isinstance(operation, s.Parameter)]

    def _is_alike(self, frame: Frame, operation: s.Call) -> bool:
        """Whether it becomes an array that every process holds whole: what is passed is then the same everywhere."""
        for argument in operation.arguments:
            sharding = certain(self.ev.value(frame, argument.value))
            if isinstance(sharding, Applied) and sharding.name == "jax.sharding.NamedSharding":
                given = self.ev.argument(sharding, "spec")
                spec = certain(given) if given is not None else None
                if isinstance(spec, Applied) and spec.arguments == Arguments():
                    return True
        return False

    def _local(self, callee: Value, operation: s.Call) -> int | None:
        """The argument that a call of a library takes as this process's part."""
        run, bound = self.ev.through_partial(callee)
        known = self.ev.knowledge.get(run.name) if isinstance(run, External) else None
        if known is None or known.local is None:
            return None
        for argument in operation.arguments:
            if argument.keyword == known.local:
                return argument.value
        given = [a.value for a in operation.arguments if a.keyword is None and not a.star]
        position = known.positional.index(known.local) - len(bound.positional)
        return given[position] if 0 <= position < len(given) else None
