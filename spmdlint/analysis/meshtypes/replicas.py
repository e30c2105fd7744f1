"""States that the host copies to every device, recognised by their class: ``replicate(State.create(...))``.

If a mapped body takes such a state, and no caller of the map is known, the copies are the same at least in the first
step, unless the host puts different keys into them afterwards.
"""

from __future__ import annotations

from functools import cached_property

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.standard import COPIES
from spmdlint.analysis.evaluation.values import ClassValue, External, Frame, FunctionValue, Value, certain
from spmdlint.knowledge.typing import Typing
from spmdlint.program import summary as s
from spmdlint.program.link import FunctionRef

_KEYS = ("rng", "key", "seed")


class Replicas:
    """Knows the classes of such states. One per run."""

    def __init__(self, evaluator: Evaluator, reach: Reach, table: Typing) -> None:
        self.ev = evaluator
        self.reach = reach
        self.table = table

    def taken_by(self, function: Value) -> frozenset[int]:
        """The positions at which a project function takes objects of such classes, by its annotations."""
        if not isinstance(function, FunctionValue) or not self._classes:
            return frozenset()
        frame = self.ev.free_frame(function.ref)
        formals = frame.code.function.formals[function.receiver is not None :]
        kinds = [self.ev.objects.annotations.class_of_parameter(frame, formal.name) for formal in formals]
        return frozenset(
            n for n, kind in enumerate(kinds) if isinstance(kind, ClassValue) and kind.ref in self._classes
        )

    @cached_property
    def _classes(self) -> frozenset[FunctionRef]:
        """The classes of which the host copies new objects to all devices, without giving the copies keys."""
        found: set[FunctionRef] = set()
        for ref in self.reach.calling(self.table.rows.replicate):
            frame = self.ev.free_frame(ref)
            for _, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                callee = certain(self.ev.value(frame, call.function))
                if isinstance(callee, External) and callee.name in self.table.rows.replicate and call.arguments:
                    cls = self._made_of(frame, call.arguments[0].value)
                    if cls is not None:
                        found.add(cls.ref)
        return frozenset(found) if not self._gives_keys() else frozenset()

    def _made_of(self, frame: Frame, number: int) -> ClassValue | None:
        """The class of a new object: ``State(...)``, ``State.create(...)``."""
        made = frame.code.operations[frame.code.root_of(number)]
        if not isinstance(made, s.Call):
            return None
        maker = frame.code.operations[made.function]
        named = maker.base if isinstance(maker, s.Attribute) and maker.name == "create" else made.function
        cls = certain(self.ev.value(frame, named))
        return cls if isinstance(cls, ClassValue) else None

    def _gives_keys(self) -> bool:
        """Whether the host makes keys for its devices, or changes those in a state."""
        if self.reach.calling(self.table.rows.split_own):
            return True
        for ref in self.reach.host:
            for call in self.ev.code(ref).calls_named(COPIES).values():
                names = [argument.keyword.lower() for argument in call.arguments if argument.keyword]
                if any(word in name for word in _KEYS for name in names):
                    return True
        return False
