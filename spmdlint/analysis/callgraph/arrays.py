"""Which values are certainly single arrays, and not tuples or other pytrees of arrays."""

from __future__ import annotations

from spmdlint.analysis.callgraph.calls import Calls
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue
from spmdlint.program import summary as s

_METHODS = frozenset("sum mean max min prod astype reshape ravel flatten transpose dot var std argmax argmin".split())
_ARITHMETIC = frozenset(("-", "/", "//", "**", "@"))
MAX_DEPTH = 12


class Arrays:
    """Traces results back to the operations that make them."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.ev = calls.ev

    def returned(self, frame: Frame, depth: int = 0) -> bool:
        """Whether a function returns a single array on every path."""
        function = self.ev.function(frame)
        returns = [
            operation
            for block in self.ev.live_blocks(frame)
            for operation in (function.operations[n] for n in function.blocks[block].operations)
            if isinstance(operation, s.Return)
        ]
        if not returns or function.generator or function.asynchronous:
            return False
        return all(r.value is not None and self.is_array(frame, r.value, depth) for r in returns)

    def is_array(self, frame: Frame, number: int, depth: int = 0) -> bool:
        """Whether the value of an operation is a single array."""
        if depth > MAX_DEPTH:
            return False
        operation = self.ev.function(frame).operations[number]
        if isinstance(operation, s.Binary):
            sides = (operation.left, operation.right)
            return operation.operator in _ARITHMETIC or any(self.is_array(frame, n, depth + 1) for n in sides)
        if isinstance(operation, s.Unary):
            return operation.operator == "-"
        if isinstance(operation, s.IfExp):
            return all(self.is_array(frame, n, depth + 1) for n in (operation.body, operation.orelse))
        if isinstance(operation, s.Load):
            return self._name(frame, number, operation, depth)
        if isinstance(operation, s.Call):
            return self._call(frame, operation, depth)
        return isinstance(operation, s.Const) and isinstance(operation.value, float)

    def _name(self, frame: Frame, number: int, operation: s.Load, depth: int) -> bool:
        function = self.ev.function(frame)
        if not function.binds(operation.name):
            return False
        stores = [function.operations[n] for n in self.ev.reaching(frame, number, operation.name)]
        return bool(stores) and all(isinstance(o, s.Store) and self.is_array(frame, o.value, depth + 1) for o in stores)

    def _call(self, frame: Frame, operation: s.Call, depth: int) -> bool:
        callee = self.ev.callee(frame, operation)
        source = self.ev.function(frame).operations[operation.function]
        if isinstance(callee, External):
            return self.ev.knowledge.gives_array(callee.name)
        if isinstance(callee, (FunctionValue, Applied)):
            return self.result(callee, frame, operation, depth + 1)
        return callee is None and isinstance(source, s.Attribute) and source.name in _METHODS

    def result(self, callee: FunctionValue | Applied, frame: Frame, operation: s.Call, depth: int) -> bool:
        """Whether a call of a function, or of a mapped or compiled one (which keeps the pytree), returns one array."""
        if not self.calls.keeps_results(callee):
            return False
        targets = list(self.calls.targets(callee, self.ev.arguments(frame, operation), frame.depth + 1))
        return bool(targets) and all(self.returned(target.frame, depth) for target in targets)
