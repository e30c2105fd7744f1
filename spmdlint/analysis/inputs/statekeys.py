"""Keys that the state of training is made with: with the process index in them, each process trains its own weights."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Applied, External, Frame, FunctionValue, Instance, Site, certain
from spmdlint.analysis.inputs.hostkeys import INITIALIZERS
from spmdlint.analysis.inputs.replicas import trains_together
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

_INSIDE = 3
"""How many functions below the call that makes the state the model or the optimizer may be initialized."""
# How words in the names of keys end.
_KEYS = ("key", "keys", "rng", "rngs", "seed")


class StateKeys:
    """Finds such keys. One per run."""

    def __init__(
        self,
        evaluator: Evaluator,
        table: Typing,
        reach: Reach,
        content: Origins,
        multi: MultiProcess,
        *,
        preview: bool,
    ) -> None:
        self.ev = evaluator
        self.table = table
        self.reach = reach
        self.content = content
        self.multi = multi
        self.preview = preview

    def found(self) -> Iterator[tuple[Site, Reason]]:
        """Calls that make state with such a key, where all processes train on it together.

        They do if the state is replicated to the devices, in a program that reduces over a mapped axis. With
        ``preview``, every ``model.init`` with such a key counts.
        """
        for ref in self.ev.project.functions():
            if not self.multi.runs_several(ref.path):
                continue
            frame = self.ev.free_frame(ref)
            together = self._replicated(frame)
            if together and not trains_together(self.ev, self.reach, ref):
                together = frozenset()
            for number, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                key = self._initial_key(frame, call) if self.preview or number in together else None
                if key is None and number in together:
                    key = self._own_key(frame, call)
                reason = self.content.of(frame, key) if key is not None else None
                if reason is not None and reason.source.kind == "identity":
                    yield Site(ref, number), reason

    def _replicated(self, frame: Frame) -> frozenset[int]:
        """The operations that make what this function replicates to the devices."""
        found: set[int] = set()
        for _, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
            callee = self.ev.callee(frame, call)
            if isinstance(callee, External) and callee.name in self.table.rows.replicate and call.arguments:
                self._follow(frame, call.arguments[0].value, found)
        return frozenset(found)

    def _follow(self, frame: Frame, number: int, found: set[int]) -> None:
        """Add the operations that a value is made from in its function."""
        if number in found:
            return
        found.add(number)
        operation = frame.code.operations[number]
        if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
            inner: tuple[int, ...] = tuple(self.ev.reaching(frame, number, operation.name))
        elif isinstance(operation, s.Call) and self._own_key(frame, operation) is not None:
            return  # the keys before this one are not what the state is made with
        else:
            inner = inputs(operation)
        for each in inner:
            self._follow(frame, each, found)

    def _own_key(self, frame: Frame, call: s.Call) -> int | None:
        """The key that a function of the project is given, which initializes a model or an optimizer with it."""
        key = next((a.value for a in call.arguments if self._is_key(frame, a.value)), None)
        return key if key is not None and self._initializes(frame, call, _INSIDE) else None

    def _initializes(self, frame: Frame, call: s.Call, depth: int) -> bool:
        """Whether a function of the project does so, judging by its name or by the methods that it calls."""
        callee = self.ev.callee(frame, call)
        while isinstance(callee, Applied) and callee.arguments.positional:
            callee = certain(callee.arguments.positional[0])  # compiled
        if not isinstance(callee, FunctionValue) or depth == 0:
            return False
        inside = self.ev.entered_frame(callee, self.ev.arguments(frame, call), frame.depth + 1)
        inside = inside or self.ev.free_frame(callee.ref)
        calls = list(inside.code.calls_in(sorted(self.ev.live_blocks(inside))))
        called = (inside.code.operations[inner.function] for _, inner in calls)
        if any(isinstance(method, s.Attribute) and method.name in INITIALIZERS for method in called):
            return True
        named = inside.code.function.name.startswith("init") and "params" in inside.code.function.name
        return named or any(self._initializes(inside, inner, depth - 1) for _, inner in calls)

    def _initial_key(self, frame: Frame, call: s.Call) -> int | None:
        """The key that ``model.init(key, ...)`` is given."""
        method = frame.code.operations[call.function]
        if not call.arguments or not isinstance(method, s.Attribute) or method.name not in INITIALIZERS:
            return None
        first = call.arguments[0]
        if isinstance(frame.code.operations[first.value], s.Call) and self._is_layer(frame, method.base):
            return first.value
        return first.value if not first.star and self._is_key(frame, first.value) else None

    @staticmethod
    def _is_key(frame: Frame, number: int) -> bool:
        """Whether the name of a value says that it is a key."""
        given = frame.code.operations[number]
        name = given.name if isinstance(given, (s.Load, s.Attribute)) else ""
        return any(word.endswith(_KEYS) for word in name.partition("#")[0].lower().split("_"))

    def _is_layer(self, frame: Frame, number: int) -> bool:
        """Whether a value is an object of a class that derives from a library's."""
        values = self.ev.value(frame, number)
        return any(isinstance(v, Instance) and self.ev.objects.library_bases(v.cls) for v in values)
