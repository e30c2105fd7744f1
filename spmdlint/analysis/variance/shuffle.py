"""Values whose order comes from a process's own seed."""

from __future__ import annotations

from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.transfers import through, through_method
from spmdlint.analysis.evaluation.values import External, Frame, FunctionValue, Instance
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.program import summary as s


class ShuffledOrder(Property):
    """The order of the value comes from a process's own seed."""

    content: Origins

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Load):
            return self._shuffled_in_place(origins, frame, number, operation.name) or CONTINUE
        if isinstance(operation, s.Collected):
            function = origins.ev.function(frame)
            loops = [function.operations[loop] for loop in operation.loops]
            return origins.any_of(frame, [loop.iterable for loop in loops if isinstance(loop, s.Next)])
        if isinstance(operation, s.Subscript):
            return origins.any_of(frame, (operation.index, operation.base))
        if isinstance(operation, s.Call):
            return self._call(origins, frame, number, operation)
        return CONTINUE

    def _call(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Answer:
        arguments = [argument.value for argument in operation.arguments]
        for callee in ordered(origins.ev.value(frame, operation.function)):
            if isinstance(callee, External):
                known = origins.ev.knowledge.get(callee.name)
                if known is not None and known.order_seed is not None:
                    seed = passed(operation, known.order_seed, known.positional)
                    found = self.content.why(frame, seed) if seed is not None else None
                    return self._step(origins, frame, number, found) or origins.any_of(frame, arguments)
                if callee.name in ("numpy.random.permutation", "random.sample"):
                    return self._step(origins, frame, number, self.content.why(frame, number))
                return origins.any_of(frame, through(origins.ev.knowledge, callee.name, operation, "order"))
        method = origins.ev.function(frame).operations[operation.function]
        if isinstance(method, s.Attribute) and method.name in ("permutation", "permuted", "sample"):
            return self._step(origins, frame, number, self.content.why(frame, method.base))
        kept = origins.any_of(frame, through_method(origins.ev, frame, operation, "order"))
        if isinstance(method, s.Attribute) and method.name == "shuffle":
            return self._of_seed(origins, frame, number, operation) or kept
        if kept is not None:
            return kept
        return self._gone_over(origins, frame, number) or CONTINUE

    @staticmethod
    def _gone_over(origins: Origins, frame: Frame, number: int) -> Reason | None:
        """Why iterating over an object of the project gives an order of this process's own, by its ``__iter__``."""
        for value in ordered(origins.ev.value(frame, number)):
            for method in origins.ev.objects.attribute(value, "__iter__") if isinstance(value, Instance) else ():
                if isinstance(method, FunctionValue):
                    inside = origins.ev.free_frame(method.ref)
                    loops = inside.code.of_kind(s.Next) if inside.code.function.generator else ()
                    given = [loop.iterable for _, loop in loops]
                    given += [y.value for _, y in inside.code.of_kind(s.Yield) if y.delegate and y.value is not None]
                    found = origins.any_of(inside, given) or origins.of_returns(inside)
                    if found is not None:
                        return found
        return None

    def _of_seed(self, origins: Origins, frame: Frame, number: int, operation: s.Call) -> Reason | None:
        """Why a data set's own ``shuffle`` varies: its seed is given by name, or after the size of its buffer."""
        given = [argument.value for argument in operation.arguments if argument.keyword in (None, "seed")]
        named = [argument.value for argument in operation.arguments if argument.keyword == "seed"]
        return self._step(origins, frame, number, self.content.any_of(frame, named or given[1:2]))

    def _shuffled_in_place(self, origins: Origins, frame: Frame, read: int, name: str) -> Reason | None:
        """Why a name is in a shuffled order: ``rng.shuffle(name)`` runs before it is read, with a varying generator."""
        function = origins.ev.function(frame)
        for number, operation in enumerate(function.operations):
            if not isinstance(operation, s.Call) or not operation.arguments:
                continue
            method = function.operations[operation.function]
            given = function.operations[operation.arguments[0].value]
            shuffles = isinstance(method, s.Attribute) and method.name == "shuffle"
            if not shuffles or not isinstance(given, s.Load) or given.name != name:
                continue
            if not function.binds(name) or self._comes_to(origins, frame, operation.arguments[0].value, read, name):
                return self._step(origins, frame, number, self.content.why(frame, number))
        return None

    @staticmethod
    def _comes_to(origins: Origins, frame: Frame, shuffled: int, read: int, name: str) -> bool:
        """Whether the value that a name has at one place still reaches another place, which runs later."""
        flow, blocks = origins.ev.flow(frame.ref), origins.ev.function(frame).block_of
        if flow.reaching(shuffled, name).isdisjoint(flow.reaching(read, name)):
            return False
        if blocks[shuffled] == blocks[read] and shuffled < read:
            return True
        return any(blocks[read] in flow.reachable(edge.target) for edge in flow.function.blocks[blocks[shuffled]].edges)

    @staticmethod
    def _step(origins: Origins, frame: Frame, number: int, found: Reason | None) -> Reason | None:
        return origins.step(frame, number, "the shuffle depends on it", found) if found is not None else None
