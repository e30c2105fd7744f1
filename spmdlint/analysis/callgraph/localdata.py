"""Arrays that are certainly on this process alone: fetched, addressed, made here, or computed from such arrays."""

from __future__ import annotations

from collections.abc import Sequence

from spmdlint.analysis.callgraph.locality import DEPTH, EAGER, everywhere, on_local_devices, sharded
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.callgraph.statics import static_arguments
from spmdlint.analysis.evaluation.bindings import passed_to
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.intent import managers_around
from spmdlint.analysis.evaluation.ordering import ordered
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, certain
from spmdlint.program import summary as s

# Called outside jit, these make an array on this process alone.
_MAKERS: tuple[str, ...] = ("jax.random.", "numpy.", "jax.device_get", "jax.local_devices")
# The result of an exchange between processes is returned to each host.
_MAKERS += tuple(f"jax.experimental.multihost_utils.{name}" for name in ("process_allgather", "broadcast_one_to_all"))
_MAKERS += tuple(f"jax.numpy.{name}" for name in "zeros ones full array asarray arange eye".split())
_PER_CALLER = DEPTH // 3
MAX_CALLERS = 8
"""The most callers whose arguments are examined; with more, the place of an argument is unknown."""
_DEFAULT_DEVICE = External("jax.default_device")


class LocalData:
    """Finds values that are on one process alone, through names, elements and arguments. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach) -> None:
        self.ev = evaluator
        self.reach = reach

    def runs_here(self, frame: Frame, number: int, call: s.Call) -> bool:
        """Whether a call of a compiled function runs on this process alone, by its arguments or its default device."""
        managers = list(managers_around(frame, number))
        if any(_DEFAULT_DEVICE in self.ev.value(frame, manager.function) for manager in managers):
            return True
        if not call.arguments:
            return not managers and self._takes_all(frame, call)  # a context may say on which devices
        return self._arguments(frame, call, DEPTH, set())

    def _arguments(self, frame: Frame, call: s.Call, depth: int, seen: set[int]) -> bool:
        """Whether all arrays that a call is passed are on this process alone; constants do not count."""
        static = self._static_arguments(frame, call)
        operations = frame.code.operations
        given = [a.value for a in call.arguments if not _is_number(operations, a.value) and a.value not in static]
        if not given and call.arguments and not static:
            return self._takes_all(frame, call)  # number literals
        return bool(given) and all(self._is_local(frame, value, depth, seen) for value in given)

    def _takes_all(self, frame: Frame, call: s.Call) -> bool:
        """Whether a compiled function has no arrays but its arguments: it reads no name of a function around it."""
        callee = certain(self.ev.value(frame, call.function))
        if not isinstance(callee, Applied) or callee.receiver is not None or not callee.arguments.positional:
            return False
        run = certain(callee.arguments.positional[0])
        if not isinstance(run, FunctionValue) or run.receiver is not None:
            return False
        code = self.ev.code(run.ref)
        scopes = (code.scope_of(load.name) for _, load in code.of_kind(s.Load))
        return all(scope is None or scope is code.function for scope in scopes)

    def _is_local(self, frame: Frame, number: int, depth: int, seen: set[int]) -> bool:
        def says(operation: s.Operation, depth: int) -> bool:
            if isinstance(operation, s.Attribute):
                local = operation.name.startswith("addressable_")
                return local or self._is_local(frame, operation.base, depth - 1, seen)
            if isinstance(operation, s.Parameter):
                return self._passed_locally(frame, operation.name, depth - _PER_CALLER)
            if isinstance(operation, s.Next):
                return self._is_local(frame, operation.iterable, depth - 1, seen)
            if isinstance(operation, s.Binary):
                sides = [n for n in (operation.left, operation.right) if not _is_written(frame, n)]
                return bool(sides) and all(self._is_local(frame, side, depth - 1, seen) for side in sides)
            return isinstance(operation, s.Call) and self._called_locally(frame, operation, depth, seen)

        return everywhere(self.ev, frame, number, depth, says, seen)

    def _passed_locally(self, frame: Frame, name: str, depth: int) -> bool:
        """Whether every known call passes such an array for a parameter."""
        edges = [edge for edge in self.reach.callers.get(frame.ref, ()) if edge.caller.ref != frame.ref]
        function = frame.code.function
        if depth <= 0 or not 0 < len(edges) <= MAX_CALLERS:
            return False
        for edge in edges:
            call = edge.caller.code.operations[edge.number]
            if edge.target.way != "call" or not isinstance(call, s.Call):
                return False
            bound = self.ev.project.enclosing_class(frame.ref) is not None
            value = passed_to(function, call, name, bound=bound)
            if value is None or not self._is_local(edge.caller, value, depth - 1, set()):
                return False
        return True

    def _called_locally(self, frame: Frame, operation: s.Call, depth: int, seen: set[int]) -> bool:
        for callee in ordered(self.ev.value(frame, operation.function)):
            if isinstance(callee, External):
                if callee.name == "jax.device_put" and len(operation.arguments) > 1:
                    place = operation.arguments[1].value
                    places = self.ev.value(frame, place)
                    return self._own_device(frame, place, depth) or any(map(on_local_devices, places))
                if callee.name.startswith(_MAKERS):
                    return True
                return callee.name.startswith(EAGER) and self._arguments(frame, operation, depth - 1, seen)
            if isinstance(callee, Applied) and self._compiles(callee):
                # What is computed from local data alone stays where the data are.
                return not sharded(self.ev, callee) and self._arguments(frame, operation, depth - 1, seen)
        return self._is_local(frame, operation.function, depth - 1, seen)

    def _static_arguments(self, frame: Frame, operation: s.Call) -> frozenset[int]:
        """The values that a call passes for static parameters, which are not arrays."""
        callee = certain(self.ev.value(frame, operation.function))
        if not isinstance(callee, Applied) or not callee.arguments.positional:
            return frozenset()
        mapped = certain(callee.arguments.positional[0])
        formals = self.ev.project.function(mapped.ref).formals if isinstance(mapped, FunctionValue) else ()
        bound = callee.receiver is not None or (isinstance(mapped, FunctionValue) and mapped.receiver is not None)
        names = [formal.name for formal in formals[bound:]]
        return frozenset(value for _, value in static_arguments(self.ev, callee, operation, names))

    def _compiles(self, callee: Applied) -> bool:
        known = self.ev.knowledge.get(callee.name)
        return known is not None and known.kind == "jit"

    def _own_device(self, frame: Frame, number: int, depth: int) -> bool:
        """Whether the value is a device of this process: ``jax.local_devices()[0]``."""

        def says(operation: s.Operation, _depth: int) -> bool:
            callees = self.ev.value(frame, operation.function) if isinstance(operation, s.Call) else ()
            return any(isinstance(v, External) and v.name == "jax.local_devices" for v in callees)

        return everywhere(self.ev, frame, number, depth, says)


def _is_number(operations: Sequence[s.Operation], number: int) -> bool:
    """Whether the operation is a constant, possibly with a sign."""
    operation = operations[number]
    return isinstance(operations[operation.operand] if isinstance(operation, s.Unary) else operation, s.Const)


def _is_written(frame: Frame, number: int) -> bool:
    return isinstance(frame.code.operations[frame.code.root_of(number)], s.Const)
