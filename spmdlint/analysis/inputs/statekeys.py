"""Keys that the state of training is made with: with the process index in them, each process trains its own weights."""

from __future__ import annotations

from collections.abc import Iterator

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.values import Frame, Instance, Site
from spmdlint.analysis.inputs.replicas import trains_together
from spmdlint.analysis.inputs.sharedkeys import INITIALIZERS, UsesOfKeys
from spmdlint.analysis.variance.origins import Origins, Reason
from spmdlint.heuristics.multiprocess import MultiProcess
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.operands import inputs

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
        self._uses = UsesOfKeys(content)

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
        """The operations that make what this function replicates, without the keys before one that makes a model."""
        calls = dict(frame.code.calls_in(sorted(self.ev.live_blocks(frame))))
        copied = (call for call in calls.values() if self.ev.may_call(frame, call, *self.table.rows.replicate))
        pending = [each.value for call in copied for each in call.arguments[:1]]
        found: set[int] = set()
        while pending:
            number = pending.pop()
            if number in found:
                continue
            found.add(number)
            operation, call = frame.code.operations[number], calls.get(number)
            if isinstance(operation, s.Load) and frame.code.function.binds(operation.name):
                pending += self.ev.reaching(frame, number, operation.name)
            elif call is None or self._own_key(frame, call) is None:
                pending += inputs(operation)
        return frozenset(found)

    def _own_key(self, frame: Frame, call: s.Call) -> int | None:
        """The key that a function of the project is given, which initializes a model or an optimizer with it."""
        key = next((a.value for a in call.arguments if self._is_key(frame, a.value)), None)
        return key if key is not None and self._uses.initializes(self.ev.callee(frame, call)) else None

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
