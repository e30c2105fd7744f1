"""What a batch is made of: the elements of a loop, a parameter or the result of a call, before they are packed.

Stacking, naming and picking fields leave the data what it is, and so does a function that looks into its arguments. A
slice does not, for it may be the very step that takes one process's share of what all processes have.
"""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Instance,
    Member,
    ModuleValue,
    Site,
    constant,
)
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.knowledge.reading import reading
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_DEPTH = 10
# Names of parameters that nobody gives to data: objects, and the settings that sizes and initial values come from.
_NO_DATA = frozenset("self cfg conf config configuration args flags hparams hyperparameters options settings".split())
_WHOLE = (ModuleValue, Instance, ClassValue)


class MadeOf:
    """Follows values back within one function. One per run."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.ev = evaluator
        self._looks: dict[FunctionRef, frozenset[str]] = {}

    def parts(self, frame: Frame, number: int, *, given: bool) -> Iterator[int]:
        """The operations that the parts of a value come from.

        ``given``: include parameters and results of calls; without it, only elements of loops and results of ``next``.
        """
        return self._parts(frame, number, given, _DEPTH)

    def _parts(self, frame: Frame, number: int, given: bool, depth: int) -> Iterator[int]:
        function = frame.code.function
        operation = function.operations[number]
        if depth == 0:
            return
        if self._is_element(frame, operation):
            yield number
        elif isinstance(operation, (s.Store, s.Item)):
            yield from self._parts(frame, operation.value, given, depth - 1)
        elif isinstance(operation, s.Load) and function.binds(operation.name):
            for store in sorted(self.ev.reaching(frame, number, operation.name)):
                yield from self._parts(frame, store, given, depth - 1)
        elif isinstance(operation, s.Parameter):
            if given and operation.name not in _NO_DATA:
                yield number
        elif isinstance(operation, (s.Subscript, s.Attribute)):
            if self._picks(frame, operation):
                yield from self._parts(frame, operation.base, given, depth - 1)
        elif isinstance(operation, s.Collected):
            yield from self._collected(frame, operation, given, depth - 1)
        elif isinstance(operation, s.Call):
            yield from self._called(frame, number, operation, given, depth - 1)

    @staticmethod
    def _is_element(frame: Frame, operation: s.Operation) -> bool:
        """Whether an operation is the element of a loop, or one of the names it is unpacked to."""
        unpacked = frame.code.operations[operation.value] if isinstance(operation, s.Item) else None
        return isinstance(operation, s.Next) or isinstance(unpacked, s.Next)

    def _picks(self, frame: Frame, operation: s.Subscript | s.Attribute) -> bool:
        """Whether it is a field of its base, by a constant name or index, or by each of the base's own keys."""
        if isinstance(operation, s.Attribute):
            return not any(isinstance(value, (*_WHOLE, External)) for value in self.ev.value(frame, operation.base))
        if constant(self.ev.value(frame, operation.index)) is not None:
            return True
        key = frame.code.operations[frame.code.root_of(operation.index)]
        if not isinstance(key, s.Next):
            return False
        base = frame.code.root_of(operation.base)
        return base in (frame.code.root_of(key.iterable), *self._passed_to(frame, key.iterable))

    @staticmethod
    def _passed_to(frame: Frame, number: int) -> list[int]:
        call = frame.code.operations[frame.code.root_of(number)]
        return [frame.code.root_of(a.value) for a in call.arguments] if isinstance(call, s.Call) else []

    def _collected(self, frame: Frame, operation: s.Collected, given: bool, depth: int) -> Iterator[int]:
        """The parts of a list: those of the iterable that it loops over, where its elements are parts of that."""
        for made in self._parts(frame, operation.element, given, depth):
            item = frame.code.operations[made]
            loop = item.value if isinstance(item, s.Item) else made
            each = frame.code.operations[loop]
            if loop in operation.loops and isinstance(each, s.Next):
                yield from self._parts(frame, each.iterable, given, depth)
            yield made

    def _called(self, frame: Frame, number: int, call: s.Call, given: bool, depth: int) -> Iterator[int]:
        for callee in ordered(self.ev.value(frame, call.function)):
            if isinstance(callee, External):
                known = self.ev.knowledge.get(callee.name)
                if known is not None and known.stacks and call.arguments:
                    yield from self._parts(frame, call.arguments[0].value, given, depth)
                elif callee.name == reading().next:
                    yield number
            elif isinstance(callee, FunctionValue) and call.arguments:
                function, bound = self.ev.project.function(callee.ref), callee.receiver is not None
                for name in sorted(self._looked_into(callee.ref)):
                    value = passed_to(function, call, name, bound=bound)
                    if value is not None:
                        yield from self._parts(frame, value, given, depth)
            elif given and not isinstance(callee, (Applied, Called, Member, ClassValue, Instance)):
                method = frame.code.operations[call.function]
                if isinstance(method, s.Attribute) and not call.arguments:
                    yield number

    def _looked_into(self, ref: FunctionRef) -> frozenset[str]:
        """The parameters whose fields or elements a function uses: those are data, and not counts or settings."""
        found = self._looks.get(ref)
        if found is None:
            code = self.ev.code(ref)
            names = {formal.name for formal in code.function.formals}
            asked = [o.base for _, o in code.of_kind(s.Attribute)] + [o.base for _, o in code.of_kind(s.Subscript)]
            asked += [o.iterable for _, o in code.of_kind(s.Next)]
            loads = (code.operations[number] for number in asked)
            found = frozenset(load.name for load in loads if isinstance(load, s.Load) and load.name in names)
            self._looks[ref] = found
        return found


class Made(Property):
    """The value is made by a call of a library or of a generator, or is written out."""

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Call):
            project = origins.ev.project
            callees = [v for v in origins.ev.value(frame, operation.function) if isinstance(v, FunctionValue)]
            if callees and not any(project.function(callee.ref).generator for callee in callees):
                return CONTINUE
        elif not isinstance(operation, (s.Display, s.Collected)):
            return CONTINUE
        return Reason(Site(frame.ref, number), "the data that is shared out is made here", "made")
