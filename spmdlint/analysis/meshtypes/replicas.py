"""States that the host copies to every device, recognised by their class: ``replicate(State.create(...))``.

If a mapped body takes such a state, and no caller of the map is known, the copies are the same at least in the first
step, unless the host puts different keys into them afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import by_position
from spmdlint.analysis.evaluation.evaluate import Evaluator
from spmdlint.analysis.evaluation.standard import COPIES
from spmdlint.analysis.evaluation.values import (
    Applied,
    Called,
    ClassValue,
    External,
    Frame,
    FunctionValue,
    Site,
    Value,
    certain,
)
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

    def made_apart(self, sites: Iterable[Site], positions: frozenset[int]) -> bool:
        """Whether a call of a map passes a model of its own to each device: ``pmap(init)(jax.random.split(key, n))``.

        Such models are trained apart, and their gradients are not to be reduced.
        """
        for site in sites:
            frame = self.ev.free_frame(site.ref)
            call = frame.code.operations[site.number]
            given = by_position(call) if isinstance(call, s.Call) else []
            for position in positions:
                if position < len(given) and any(map(self._is_made_apart, self.ev.value(frame, given[position]))):
                    return True
        return False

    def _is_made_apart(self, value: Value) -> bool:
        if not isinstance(value, Called) or not isinstance(value.function, Applied):
            return False
        known = self.ev.knowledge.get(value.function.name)
        frame = self.ev.free_frame(value.site.ref)
        call = frame.code.operations[value.site.number]
        if known is None or not known.by_hand or not isinstance(call, s.Call):
            return False
        keys = (certain(self.ev.value(frame, argument.value)) for argument in call.arguments)
        return any(isinstance(each, Applied) and each.name in self.table.rows.split for each in keys)

    @cached_property
    def _classes(self) -> frozenset[FunctionRef]:
        """The classes of which the host copies new objects to all devices, without giving the copies keys."""
        found: set[FunctionRef] = set()
        for ref in self.reach.calling(self.table.rows.replicate):
            frame = self.ev.free_frame(ref)
            for _, call in frame.code.calls_in(sorted(self.ev.live_blocks(frame))):
                callee = self.ev.callee(frame, call)
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
